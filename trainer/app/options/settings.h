// Flags and their values, as text.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
class Config;
}  // namespace CLI

namespace muster::trainer {

struct Setting {
  std::string group;     // the heading in --help
  std::string flag;      // "--lr"
  std::string value;     // in command-line form: "0.02"; empty: a path that is not given
  std::string standard;  // the default
  bool list = false;     // each line of the value is a separate value
};

// Formats a value in command-line form: "0.02", "128", "true". Doubles get the fewest digits that
// parse to the same number.
std::string SettingText(const std::string& value);
std::string SettingText(bool value);
std::string SettingText(double value);
// One item per line.
std::string SettingText(const std::vector<std::string>& values);
template <typename Whole>
std::string SettingText(Whole value) {
  return std::to_string(value);
}

// Reads the current values of flags. Refers to the variables that the flags are parsed into, so
// they must outlive it.
class SettingSource {
 public:
  // Adds a flag; `read` returns its value, which must be the default at this point. `list`: each
  // line is a separate value.
  void Add(std::string group, std::string flag, std::function<std::string()> read,
           bool list = false);

  // Returns all flags with their current values, in the order in which they were added, grouped.
  std::vector<Setting> Read() const;

 private:
  struct Entry {
    Setting at_first;
    std::function<std::string()> read;
  };
  std::vector<Entry> entries_;
};

// How a flag's values may differ.

struct SettingRule {
  // Between the ranks of a run.
  enum class Ranks {
    kSame,   // the same value on all ranks
    kGiven,  // given on all ranks or on none; the value may differ, such as a path on another host
    kFree,   // any value
  };
  // Between a checkpoint and a run that resumes from it.
  enum class Resume {
    kSame,  // a different value is refused
    kSaid,  // a different value may affect the result, so it is reported
    kFree,  // a different value does not affect the result
  };
  Ranks ranks;
  Resume resume;
};

// Returns the rule for a flag: its own, or else that of its group. The flags that determine a
// model's parameters are compared separately, by ModelFlags(), and the seed by TrainState.
SettingRule RuleOf(const Setting& setting);

// The file for --config: a line `flag = value` per flag, in INI or TOML.

// Returns CLI11's reader for such files, extended by TOML's quoted strings: they may contain '#',
// ',' and quotes, and in double quotes the escapes \n, \t, \r, \b, \f, \", \\ and \u00XX. Other
// backslashes are literal. Several values for a flag not in `lists` (without dashes) are CLI11's
// ConversionError. A key that is not a flag of `app`, which must outlive the reader, is its
// ConfigError, with the file, the line and a suggestion. A byte order mark is skipped.
std::shared_ptr<CLI::Config> ConfigFormat(const CLI::App& app, std::set<std::string> lists);

// Returns a file with `settings` of a run of `program`, which ConfigFormat reads back with the same
// values. Values that are empty by default and still empty are left out.
std::string ConfigText(const std::vector<Setting>& settings, const std::string& program);

}  // namespace muster::trainer
