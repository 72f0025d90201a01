// Flags of one group of --help, with the checks and the defaults that they show.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/app/options/setting.h"

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

// Reads a decimal number, and leaves in `text` how CLI11 writes it, which takes 010 for 8 and -1
// for the largest number without a sign. False when it is none, or does not fit.
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
// that; what `value` holds before is the default that --help shows. A value that fails its check is
// CLI11's ValidationError, with one sentence.
class FlagGroup {
 public:
  // `name` is the group's heading. If `settings` is given, the flags are added to it as well; it
  // then refers to each `value`.
  FlagGroup(CLI::App& app, std::string name, SettingSource* settings = nullptr)
      : app_(app), name_(std::move(name)), settings_(settings) {}

  // Puts `option` into the group. `read` returns its value as a user would give it, for settings,
  // where each line of a `list` is a value.
  CLI::Option* Add(CLI::Option* option, std::function<std::string()> read = nullptr,
                   bool list = false) const {
    if (settings_ != nullptr && read) {
      settings_->Add(name_, absl::StrCat("--", option->get_single_name()), std::move(read), list);
    }
    return option->group(name_);
  }

  // Whether there is such a flag, in any group.
  bool Has(const std::string& flag) const { return app_.get_option_no_throw(flag) != nullptr; }

  // Any text, or whatever else `value` can be read from.
  template <typename Value>
  CLI::Option* Text(const std::string& flag, Value& value, const std::string& description) const {
    return Add(app_.add_option(flag, value, description)->capture_default_str(),
               [&value] { return SettingText(value); });
  }
  // A file or directory that is not there unless it is asked for.
  void Path(const std::string& flag, std::string& value, const std::string& description) const {
    Text(flag, value, description)->type_name("PATH")->default_str("none");
  }
  // Any number of files and directories, after one flag or each after its own.
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
    // Without a description of the check: in --help it would hide what matters.
    Text(flag, value, description)->transform(CLI::Validator(check, ""))->type_name("N");
  }
  // --flag and --no-flag; `flag` is given without dashes.
  void Switch(const std::string& flag, bool& value, const std::string& description) const {
    Add(app_.add_flag(absl::StrCat("--", flag, ",!--no-", flag), value,
                      absl::StrCat(description, value ? " [on]" : " [off]")),
        [&value] { return SettingText(value); });
  }
  // A word of `words`; `value` is the meaning of one of them.
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

}  // namespace muster::trainer
