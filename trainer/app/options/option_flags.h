// The flags of muster-train.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/options/command_flags.h"
#include "trainer/app/options/options.h"
#include "trainer/app/options/settings.h"
#include "trainer/models/recipe.h"

namespace CLI {
class App;
}

namespace muster::trainer {

// Flag values that need conversion before they go into Options.
struct RawOptions {
  std::int64_t timeout_seconds = 300;
  std::string model;     // --model
  std::string mesh;      // --mesh, or empty
  std::string cuts;      // --pipeline-cuts
  std::string data_set;  // --dataset, or the first one
};

// Adds every flag with its default to `app`, group by group in the order of --help, and to
// `settings`. Parsing writes to `options`, to `raw` and to the registry's model settings; all must
// outlive both. kInvalidArgument if a model has an invalid flag.
absl::Status AddFlags(CLI::App& app, const Registry& registry, Options& options, RawOptions& raw,
                      SettingSource& settings);

// The flags of a recipe, in a group of --help.

// Adds each flag to `group`, and its name to `names`; both must outlive this object. All other
// flags must have been added already.
class GroupFlags : public FlagSet {
 public:
  // `program` is the program's name.
  GroupFlags(const FlagGroup& group, std::vector<std::string>& names, std::string program)
      : group_(group), names_(names), program_(std::move(program)) {}

  // OK unless a flag's name is invalid: without dashes, or already taken. Such flags are not added.
  const absl::Status& status() const { return status_; }

  void Number(const std::string& flag, std::int64_t& value, std::int64_t low, std::int64_t high,
              const std::string& description) override {
    if (!Check(flag)) return;
    group_.Number(flag, value, low, high, description);
    names_.push_back(flag);
  }
  void Number(const std::string& flag, double& value, double low, double high,
              const std::string& description) override {
    if (!Check(flag)) return;
    group_.Number(flag, value, low, high, description);
    names_.push_back(flag);
  }
  void Text(const std::string& flag, std::string& value, const std::string& description) override {
    if (!Check(flag)) return;
    group_.Text(flag, value, description);
    names_.push_back(flag);
  }
  void Switch(const std::string& flag, bool& value, const std::string& description) override {
    if (absl::StartsWith(flag, "-")) {
      Refuse(absl::StrCat("switch ", flag, " is given without dashes, as ",
                          flag.substr(std::min(flag.find_first_not_of('-'), flag.size()))));
      return;
    }
    if (!Check("--" + flag) || !Check("--no-" + flag)) return;
    group_.Switch(flag, value, description);
    names_.push_back("--" + flag);
  }
  void Choice(const std::string& flag, std::string& value, const std::vector<std::string>& words,
              const std::string& description) override {
    if (!Check(flag)) return;
    std::map<std::string, std::string> meanings;
    for (const std::string& word : words) meanings[word] = word;
    group_.Choice(flag, value, meanings, description);
    names_.push_back(flag);
  }

 private:
  // Whether a flag may have this name.
  bool Check(const std::string& flag) {
    const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), fits)) {
      Refuse(absl::StrCat("flag '", flag,
                          "' has no name: two dashes, and letters, digits and dashes behind them"));
    } else if (flag != "--" + name) {
      Refuse(absl::StrCat("flag ", flag, " begins with two dashes, as --", name));
    } else if (group_.Has(flag) || absl::c_linear_search(kOfCommands, flag)) {
      Refuse(absl::StrCat("flag ", flag, " is one that ", program_,
                          " has already; give it another name"));
    } else {
      return true;
    }
    return false;
  }
  // Keeps the first mistake.
  void Refuse(const std::string& sentence) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("the recipe's ", sentence));
  }

  // Reserved: some programs lack them, or have them only for a command.
  static constexpr std::array<std::string_view, 3> kOfCommands = {"--model", "--dataset", "--json"};

  const FlagGroup& group_;
  std::vector<std::string>& names_;
  const std::string program_;
  absl::Status status_;
};

}  // namespace muster::trainer
