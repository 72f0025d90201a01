// Flags with their values, as text.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace muster::trainer {

struct Setting {
  std::string group;     // the heading in --help
  std::string flag;      // "--lr"
  std::string value;     // as a user would give it: "0.02"; empty: a path that is not given
  std::string standard;  // the default
  bool list = false;     // each line of the value is a value of its own
};

// Formats a value as a user would give it: "0.02", "128", "true". Doubles get the fewest digits
// that parse to the same number.
std::string SettingText(const std::string& value);
std::string SettingText(bool value);
std::string SettingText(double value);
// One item in each line.
std::string SettingText(const std::vector<std::string>& values);
template <typename Whole>
std::string SettingText(Whole value) {
  return std::to_string(value);
}

// Reads the values of flags when asked. Refers to the variables that the flags are parsed into, so
// they must outlive it.
class SettingSource {
 public:
  // Adds a flag; `read` returns its value, which must be the default at this time. `list` says
  // whether its lines are values of their own.
  void Add(std::string group, std::string flag, std::function<std::string()> read,
           bool list = false);

  // Returns all flags with their present values, in the order in which they were added, those of a
  // group together.
  std::vector<Setting> Read() const;

 private:
  struct Entry {
    Setting at_first;
    std::function<std::string()> read;
  };
  std::vector<Entry> entries_;
};

}  // namespace muster::trainer
