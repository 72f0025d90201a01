// The flags of a recipe, in a group of --help.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/app/options/flag_group.h"
#include "trainer/app/options/setting.h"
#include "trainer/flag_set.h"

namespace muster::trainer {

// Flags with functions that return their values as a user would give them.
using FlagReaders = std::vector<std::pair<std::string, std::function<std::string()>>>;

// Adds each flag to `group` and to `readers`, which must outlive this object.
class GroupFlags : public FlagSet {
 public:
  GroupFlags(const FlagGroup& group, FlagReaders& readers) : group_(group), readers_(readers) {}

  void Number(const std::string& flag, std::int64_t& value, std::int64_t low, std::int64_t high,
              const std::string& description) override {
    group_.Number(flag, value, low, high, description);
    Remember(flag, value);
  }
  void Number(const std::string& flag, double& value, double low, double high,
              const std::string& description) override {
    group_.Number(flag, value, low, high, description);
    Remember(flag, value);
  }
  void Text(const std::string& flag, std::string& value, const std::string& description) override {
    group_.Text(flag, value, description);
    Remember(flag, value);
  }
  void Switch(const std::string& flag, bool& value, const std::string& description) override {
    group_.Switch(flag, value, description);
    Remember("--" + flag, value);
  }
  void Choice(const std::string& flag, std::string& value, const std::vector<std::string>& words,
              const std::string& description) override {
    std::map<std::string, std::string> meanings;
    for (const std::string& word : words) meanings[word] = word;
    group_.Choice(flag, value, meanings, description);
    Remember(flag, value);
  }

 private:
  template <typename Value>
  void Remember(const std::string& flag, Value& value) {
    readers_.emplace_back(flag, [&value] { return SettingText(value); });
  }

  const FlagGroup& group_;
  FlagReaders& readers_;
};

}  // namespace muster::trainer
