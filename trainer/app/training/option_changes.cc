#include "trainer/app/training/option_changes.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "trainer/app/options/setting_rule.h"

namespace muster::trainer {
namespace {

using Resume = SettingRule::Resume;

absl::Status MadeWith(const std::string& flag, const std::string& before, const std::string& now) {
  return absl::InvalidArgumentError(
      absl::StrCat("it was made with ", flag, " ", before, ", and this run has ", now));
}

// Compares the flags that determine the model. Returns those that the checkpoint does not contain.
absl::StatusOr<std::vector<std::string>> CompareModels(const Value& snapshot,
                                                       const Options& options) {
  const absl::StatusOr<std::string> name = snapshot.GetString("model_name");
  if (!name.ok()) return name.status();
  if (*name != options.model.name) return MadeWith("--model", *name, options.model.name);
  const Value* flags = snapshot.Find("model_flags");
  std::vector<std::string> unknown;
  for (const auto& [flag, value] : ModelFlags(options)) {
    const Value* before = flags == nullptr ? nullptr : flags->Find(flag);
    if (before == nullptr || before->string() == nullptr) {
      unknown.push_back(flag);
    } else if (*before->string() != value) {
      return MadeWith(flag, *before->string(), value);
    }
  }
  return unknown;
}

std::string OrNothing(const std::string& value) {
  return value.empty() ? "not given" : absl::StrReplaceAll(value, {{"\n", " "}});
}

// Compares all options. Returns the changes that the user should know of.
absl::StatusOr<std::vector<std::string>> CompareAll(const Value& before,
                                                    const std::vector<Setting>& settings) {
  std::vector<std::string> changes;
  for (const Setting& setting : settings) {
    const Value* entry = before.Find(setting.flag);
    // A flag that is newer than the checkpoint had its default then.
    const std::string old =
        entry != nullptr && entry->string() != nullptr ? *entry->string() : setting.standard;
    const Resume rule = RuleOf(setting).resume;
    if (old == setting.value || rule == Resume::kFree) continue;
    if (rule == Resume::kSame) return MadeWith(setting.flag, old, setting.value);
    changes.push_back(absl::StrCat(setting.flag, " was ", OrNothing(old), " and is ",
                                   OrNothing(setting.value), " now"));
  }
  return changes;
}

}  // namespace

Value OptionsValue(const std::vector<Setting>& settings) {
  Dict options;
  for (const Setting& setting : settings) {
    if (!setting.value.empty()) options.Set(setting.flag, setting.value);
  }
  return options;
}

Value FlagsValue(const std::vector<ModelFlag>& flags) {
  Dict values;
  for (const auto& [flag, value] : flags) values.Set(flag, value);
  return values;
}

absl::StatusOr<std::vector<std::string>> CompareOptions(const Value& snapshot,
                                                        const Options& options) {
  const auto unknown = CompareModels(snapshot, options);
  if (!unknown.ok()) return unknown.status();
  const Value* before = snapshot.Find("options");
  std::vector<std::string> sentences;
  if (before == nullptr || !unknown->empty()) {
    sentences.push_back(absl::StrCat(
        "warning: an older muster-train wrote this checkpoint and left out its options",
        unknown->empty() ? "" : absl::StrCat(" (", absl::StrJoin(*unknown, ", "), ")"),
        ": make sure that they are what they were"));
  }
  if (before == nullptr) return sentences;
  const auto changes = CompareAll(*before, options.settings);
  if (!changes.ok()) return changes.status();
  if (!changes->empty()) sentences.push_back(absl::StrJoin(*changes, "; "));
  return sentences;
}

}  // namespace muster::trainer
