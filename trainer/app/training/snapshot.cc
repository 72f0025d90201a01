#include "trainer/app/training/snapshot.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "base/json.h"
#include "trainer/app/options/settings.h"

namespace muster::trainer {

Value TakeSnapshot(Dict model, const TrainState& state, const Options& options,
                   const DataFacts& facts, double lr) {
  Dict scheduler;
  scheduler.Set("last_epoch", state.step);
  scheduler.Set("_last_lr", Value::List{lr});

  Dict snapshot = std::move(model);
  snapshot.Set("scheduler", std::move(scheduler));
  snapshot.Set("sampler", TrainStateValue(state));
  snapshot.Set("model_name", options.model.name);
  snapshot.Set("model_flags", FlagsValue(ModelFlags(options)));
  snapshot.Set("options", OptionsValue(options.settings));
  SetFacts(facts, snapshot);
  return snapshot;
}

absl::StatusOr<std::vector<std::string>> PutBack(const Value& snapshot, const Options& options,
                                                 Strategy& strategy, TrainState& state) {
  const Value* sampler = snapshot.Find("sampler");
  if (snapshot.Find("model_name") == nullptr || snapshot.Find("model") == nullptr ||
      snapshot.Find("optimizer") == nullptr || sampler == nullptr) {
    return absl::InvalidArgumentError(
        "it is not a checkpoint of muster-train; --init-from takes parameters alone");
  }
  absl::StatusOr<std::vector<std::string>> sentences = CompareOptions(snapshot, options);
  if (!sentences.ok()) return sentences;
  const absl::StatusOr<TrainState> before = ReadTrainState(*sampler);
  if (!before.ok()) return before.status();
  if (before->seed != state.seed) {
    return absl::InvalidArgumentError(absl::StrCat("it was made with --seed ", before->seed));
  }
  if (before->dataset_size != state.dataset_size) {
    return absl::InvalidArgumentError(absl::StrCat("it was made with a data set of ",
                                                   before->dataset_size, " samples, and ",
                                                   state.dataset_size, " are here"));
  }
  const absl::Status loaded = strategy.Load(snapshot);
  if (!loaded.ok()) return loaded;
  state = *before;
  return sentences;
}

namespace {

constexpr char kNormalization[] = "normalization";
constexpr char kMean[] = "mean";
constexpr char kDeviation[] = "deviation";
constexpr char kColumns[] = "columns";
constexpr char kClasses[] = "classes";

template <typename T>
Value ListOf(const std::vector<T>& items) {
  return Value::List(items.begin(), items.end());
}

absl::Status NotAList(const std::string& name, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is not a list of ", what));
}

// The list `name` of `dict`, each item converted by `read`; empty if there is none.
template <typename T>
absl::StatusOr<std::vector<T>> Items(const Value& dict, const char* name, const char* what,
                                     const T* (Value::*read)() const) {
  std::vector<T> items;
  const Value* const list = dict.Find(name);
  if (list == nullptr) return items;
  if (list->list() == nullptr) return NotAList(name, what);
  for (const Value& value : *list->list()) {
    const T* const item = (value.*read)();
    if (item == nullptr) return NotAList(name, what);
    items.push_back(*item);
  }
  return items;
}

absl::Status CheckNumbers(const DataFacts& facts) {
  const Normalization& norm = facts.normalization;
  bool usable = norm.mean.size() == norm.deviation.size() &&
                (facts.columns.empty() || facts.columns.size() == norm.mean.size());
  for (const double mean : norm.mean) usable = usable && std::isfinite(mean);
  for (const double deviation : norm.deviation) {
    usable = usable && std::isfinite(deviation) && deviation > 0;
  }
  if (usable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "'normalization' is damaged: it needs a finite mean and a deviation above 0 for each channel "
      "or column");
}

}  // namespace

void SetFacts(const DataFacts& facts, Dict& checkpoint) {
  if (!facts.classes.empty()) checkpoint.Set(kClasses, ListOf(facts.classes));
  if (facts.normalization.empty()) return;
  Dict normalization;
  normalization.Set(kMean, ListOf(facts.normalization.mean));
  normalization.Set(kDeviation, ListOf(facts.normalization.deviation));
  if (!facts.columns.empty()) normalization.Set(kColumns, ListOf(facts.columns));
  checkpoint.Set(kNormalization, std::move(normalization));
}

absl::StatusOr<DataFacts> ReadFacts(const Value& checkpoint) {
  DataFacts facts;
  // In a state dict, a parameter may have this name.
  const Value* const names = checkpoint.Find(kClasses);
  if (names != nullptr && names->list() != nullptr) {
    auto classes = Items(checkpoint, kClasses, "names", &Value::string);
    if (!classes.ok()) return classes.status();
    if (std::set<std::string>(classes->begin(), classes->end()).size() != classes->size()) {
      return absl::InvalidArgumentError("'classes' has the same name twice");
    }
    facts.classes = *std::move(classes);
  }
  const Value* const normalization = checkpoint.Find(kNormalization);
  if (normalization == nullptr || normalization->dict() == nullptr) return facts;
  auto mean = Items(*normalization, kMean, "numbers", &Value::floating);
  if (!mean.ok()) return mean.status();
  auto deviation = Items(*normalization, kDeviation, "numbers", &Value::floating);
  if (!deviation.ok()) return deviation.status();
  auto columns = Items(*normalization, kColumns, "names", &Value::string);
  if (!columns.ok()) return columns.status();
  facts.normalization = {*std::move(mean), *std::move(deviation)};
  facts.columns = *std::move(columns);
  const absl::Status numbers = CheckNumbers(facts);
  if (!numbers.ok()) return numbers;
  return facts;
}

std::string PackFacts(const DataFacts& facts) {
  base::Json json;
  json[kMean] = facts.normalization.mean;
  json[kDeviation] = facts.normalization.deviation;
  json[kColumns] = facts.columns;
  json[kClasses] = facts.classes;
  return base::JsonText(json);
}

DataFacts UnpackFacts(const std::string& text) {
  const base::Json json = base::ParseJson(text);
  DataFacts facts;
  json.at(kMean).get_to(facts.normalization.mean);
  json.at(kDeviation).get_to(facts.normalization.deviation);
  json.at(kColumns).get_to(facts.columns);
  json.at(kClasses).get_to(facts.classes);
  return facts;
}

namespace {

using Resume = SettingRule::Resume;

absl::Status MadeWith(const std::string& flag, const std::string& before, const std::string& now) {
  return absl::InvalidArgumentError(
      absl::StrCat("it was made with ", flag, " ", before, ", and this run has ", now));
}

// Compares the flags that determine the model. Returns those that the checkpoint lacks.
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

// Compares all options. Returns the changes that the user should know.
absl::StatusOr<std::vector<std::string>> CompareAll(const Value& before,
                                                    const std::vector<Setting>& settings) {
  std::vector<std::string> changes;
  for (const Setting& setting : settings) {
    const Value* entry = before.Find(setting.flag);
    // A flag that is newer than the checkpoint had its default value then.
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
