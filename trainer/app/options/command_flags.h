// The flags of one group of --help, with their checks and defaults.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "trainer/app/options/settings.h"

namespace CLI {
class App;
}

namespace muster::trainer {

// "a whole number from 0 to 256", "a whole number of at least 1", "a number from 0 to 1000000".
template <typename Value>
std::string Wanted(Value low, Value high) {
  const auto text = [](Value bound) {
    return absl::StrFormat("%.15g", static_cast<double>(bound));
  };
  return absl::StrCat(std::is_integral_v<Value> ? "a whole number" : "a number",
                      high == std::numeric_limits<Value>::max()
                          ? absl::StrCat(" of at least ", text(low))
                          : absl::StrCat(" from ", text(low), " to ", text(high)));
}

// Reads a decimal number, and writes CLI11's form of it to `text`; CLI11 alone would read 010 as 8
// and -1 as the largest unsigned number. False if it is malformed or out of range.
template <typename Value>
bool ReadNumber(std::string& text, Value& number) {
  if constexpr (std::is_integral_v<Value>) {
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || read != end) return false;
    text = std::to_string(number);
    return true;
  } else {
    return CLI::detail::lexical_cast(text, number);
  }
}

// Adds flags to one group of --help. Each writes to `value` when `app` parses, so both must outlive
// that; the prior content of `value` is the default in --help. A failed check is CLI11's
// ValidationError, with one sentence.
class FlagGroup {
 public:
  // `name` is the group's heading. If `settings` is given, the flags are added to it as well; it
  // then refers to each `value`.
  FlagGroup(CLI::App& app, std::string name, SettingSource* settings = nullptr)
      : app_(app), name_(std::move(name)), settings_(settings) {}

  // Puts `option` into the group. `read` returns its value in command-line form, for settings; with
  // `list`, each line is a separate value.
  CLI::Option* Add(CLI::Option* option, std::function<std::string()> read = nullptr,
                   bool list = false) const {
    if (settings_ != nullptr && read) {
      settings_->Add(name_, absl::StrCat("--", option->get_single_name()), std::move(read), list);
    }
    return option->group(name_);
  }

  // Whether this flag exists, in any group.
  bool Has(const std::string& flag) const { return app_.get_option_no_throw(flag) != nullptr; }

  // Text, or anything `value` can be parsed from.
  template <typename Value>
  CLI::Option* Text(const std::string& flag, Value& value, const std::string& description) const {
    return Add(app_.add_option(flag, value, description)->capture_default_str(),
               [&value] { return SettingText(value); });
  }
  // A file or directory; none by default.
  void Path(const std::string& flag, std::string& value, const std::string& description) const {
    Text(flag, value, description)->type_name("PATH")->default_str("none");
  }
  // Any number of files and directories, after one flag or several.
  void Paths(const std::string& flag, std::vector<std::string>& value,
             const std::string& description) const {
    Add(
        app_.add_option(flag, value, description), [&value] { return SettingText(value); },
        /*list=*/true)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("PATH")
        ->default_str(value.empty() ? "none" : value.front());
  }
  // A number from `low` to `high`, both included.
  template <typename Value, typename Bound>
  void Number(const std::string& flag, Value& value, Bound low, Bound high,
              const std::string& description) const {
    const auto check = [low = static_cast<Value>(low),
                        high = static_cast<Value>(high)](std::string& text) {
      Value number = low;
      if (ReadNumber(text, number) && number >= low && number <= high) return std::string();
      return absl::StrCat("'", text, "' is not ", Wanted(low, high));
    };
    // No check description: it would clutter --help.
    Text(flag, value, description)->transform(CLI::Validator(check, ""))->type_name("N");
  }
  // --flag and --no-flag; `flag` is given without dashes.
  void Switch(const std::string& flag, bool& value, const std::string& description) const {
    Add(app_.add_flag(absl::StrCat("--", flag, ",!--no-", flag), value,
                      absl::StrCat(description, value ? " [on]" : " [off]")),
        [&value] { return SettingText(value); });
  }
  // One of `words`, which map to values.
  template <typename Meaning>
  void Choice(const std::string& flag, Meaning& value, const std::map<std::string, Meaning>& words,
              const std::string& description) const {
    std::string names;
    for (const auto& [word, meaning] : words) {
      absl::StrAppend(&names, names.empty() ? "" : "|", word);
    }
    const auto check = [words, names](const std::string& text) {
      return words.count(text) != 0 ? std::string() : absl::StrCat(text, " is not one of ", names);
    };
    const auto standing = [words, &value] {
      for (const auto& [word, meaning] : words) {
        if (meaning == value) return word;
      }
      return std::string();
    };
    Add(app_.add_option_function<std::string>(
            flag, [&value, words](const std::string& text) { value = words.at(text); },
            description),
        standing)
        ->check(CLI::Validator(check, ""))
        ->type_name(names)
        ->default_str(standing());
  }

 private:
  CLI::App& app_;
  const std::string name_;
  SettingSource* const settings_;
};

// Guesses what a user meant by an unknown word.

// The long names of all flags of `app`, without dashes: "lr", "eval", "no-eval".
std::vector<std::string> FlagNames(const CLI::App& app);

// The one of `names` that `word` probably means: a near miss, or another program's name for it
// ("lr" for "learning-rate"). Leading dashes and a value after '=' are ignored. Empty if none is
// close.
std::string MeantName(absl::string_view word, const std::vector<std::string>& names);

// The sentence for an argument that is not one of the flags `names`: "there is no flag
// --learning-rate; did you mean --lr? --help lists the flags".
std::string UnknownArgument(const std::string& argument, const std::vector<std::string>& names);

// Shared parts of the command lines of eval, generate and predict.

// The kind of model a command needs.
enum class WantedModel { kAny, kText, kImages };

// The source of the trained model.
struct ModelSource {
  WantedModel wanted = WantedModel::kAny;
  std::string checkpoint;  // a file or a directory
  std::int64_t heads = 0;  // for a GPT whose file lacks it; 0: not given
};

// Adds the required flag --checkpoint, for a checkpoint of `program`. `source` must outlive `app`.
void AddCheckpointFlag(CLI::App& app, ModelSource& source, const std::string& program);
// Adds --heads, for commands that use a GPT.
void AddHeadsFlag(CLI::App& app, ModelSource& source);

// Parses `argv`, which begins with the command's name. Puts the text of --help into `help` if it is
// requested. kInvalidArgument and one sentence for a mistake.
absl::Status ParseCommand(CLI::App& app, int argc, const char* const* argv, std::string& help);

// Prints each of `warnings`, a sentence each, to stderr.
void SayWarnings(const std::string& program, const std::vector<std::string>& warnings);

}  // namespace muster::trainer
