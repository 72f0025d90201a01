#include "trainer/app/training/facts_value.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/json.h"

namespace muster::trainer {
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

// The list `name` of `dict`, each item as `read` finds it; empty when there is none.
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
  // A state dict may have parameters of these names.
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

}  // namespace muster::trainer
