#include "trainer/app/options/setting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "absl/strings/str_join.h"

namespace muster::trainer {

std::string SettingText(const std::string& value) {
  return value;
}

std::string SettingText(bool value) {
  return value ? "true" : "false";
}

std::string SettingText(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

std::string SettingText(const std::vector<std::string>& values) {
  return absl::StrJoin(values, "\n");
}

void SettingSource::Add(std::string group, std::string flag, std::function<std::string()> read,
                        bool list) {
  Setting setting{
      .group = std::move(group), .flag = std::move(flag), .value = read(), .list = list};
  setting.standard = setting.value;
  const auto same = [&setting](const Entry& entry) {
    return entry.at_first.group == setting.group;
  };
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(), same);
  entries_.insert(last == entries_.rend() ? entries_.end() : last.base(),
                  {std::move(setting), std::move(read)});
}

std::vector<Setting> SettingSource::Read() const {
  std::vector<Setting> settings;
  for (const Entry& entry : entries_) {
    settings.push_back(entry.at_first);
    settings.back().value = entry.read();
  }
  return settings;
}

}  // namespace muster::trainer
