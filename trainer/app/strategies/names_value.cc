#include "trainer/app/strategies/names_value.h"

namespace muster::trainer {

Value NamesValue(const std::vector<std::string>& names) {
  Value::List list;
  for (const std::string& name : names) list.emplace_back(name);
  return list;
}

absl::StatusOr<std::vector<std::string>> ReadNames(const Value& value) {
  const absl::Status other =
      absl::InvalidArgumentError("its list of names holds something else than names");
  if (value.list() == nullptr) return other;
  std::vector<std::string> names;
  for (const Value& name : *value.list()) {
    if (name.string() == nullptr) return other;
    names.push_back(*name.string());
  }
  return names;
}

}  // namespace muster::trainer
