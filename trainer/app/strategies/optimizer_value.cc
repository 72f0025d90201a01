#include "trainer/app/strategies/optimizer_value.h"

#include <map>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

struct ToValue {
  Value operator()(std::monostate) const { return Value(); }
  Value operator()(const std::pair<double, double>& both) const {
    return Value::Tuple({both.first, both.second});
  }
  template <typename Plain>
  Value operator()(const Plain& plain) const {
    return Value(plain);
  }
};

absl::Status BadState(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("the optimizer's state ", what));
}

// The tensors that one parameter has in the state.
absl::StatusOr<ParameterState> ReadParameter(const std::string& name, const Value& value) {
  if (value.dict() == nullptr) return BadState(absl::StrCat("has no dict for ", name));
  ParameterState state{.parameter = name, .tensors = {}};
  for (const auto& [key, entry] : *value.dict()) {
    const auto* word = std::get_if<std::string>(&key);
    // Python keeps None where a buffer was never made.
    if (word == nullptr || entry.is_none()) continue;
    if (entry.tensor() == nullptr) return BadState(absl::StrCat("of ", name, " is no tensor"));
    state.tensors.push_back({*word, *entry.tensor()});
  }
  return state;
}

}  // namespace

Value OptimizerStateValue(const OptimizerState& state) {
  std::map<std::string, std::int64_t> numbers;
  Value::List groups;
  for (const GroupState& group : state.groups) {
    Dict dict;
    for (const auto& [name, option] : group.options) dict.Set(name, std::visit(ToValue(), option));
    Value::List names;
    Value::List params;
    for (const std::string& parameter : group.parameters) {
      const auto number = static_cast<std::int64_t>(numbers.size());
      numbers.emplace(parameter, number);
      names.push_back(parameter);
      params.emplace_back(number);
    }
    dict.Set("names", std::move(names));
    dict.Set("params", std::move(params));
    groups.push_back(std::move(dict));
  }
  Dict by_number;
  for (const ParameterState& parameter : state.parameters) {
    Dict tensors;
    for (const NamedTensor& tensor : parameter.tensors) tensors.Set(tensor.name, tensor.tensor);
    by_number.Set(numbers.at(parameter.parameter), std::move(tensors));
  }
  Dict value;
  value.Set("state", std::move(by_number));
  value.Set("param_groups", std::move(groups));
  return value;
}

absl::StatusOr<OptimizerState> ReadOptimizerState(const Value& value) {
  const Value* by_number = value.Find("state");
  const Value* groups = value.Find("param_groups");
  if (by_number == nullptr || by_number->dict() == nullptr || groups == nullptr ||
      groups->list() == nullptr) {
    return BadState("lacks 'state' or 'param_groups'");
  }
  OptimizerState state;
  std::map<std::int64_t, std::string> name_of;
  for (const Value& entry : *groups->list()) {
    const Value* names = entry.Find("names");
    const Value* params = entry.Find("params");
    if (names == nullptr || params == nullptr || names->list() == nullptr ||
        params->list() == nullptr || names->list()->size() != params->list()->size()) {
      return BadState("does not name its parameters");
    }
    GroupState group;
    for (std::size_t i = 0; i < names->list()->size(); ++i) {
      const std::string* name = (*names->list())[i].string();
      const std::int64_t* number = (*params->list())[i].integer();
      if (name == nullptr || number == nullptr) return BadState("does not name its parameters");
      group.parameters.push_back(*name);
      name_of[*number] = *name;
    }
    state.groups.push_back(std::move(group));
  }
  for (const auto& [key, entry] : *by_number->dict()) {
    const auto* number = std::get_if<std::int64_t>(&key);
    if (number == nullptr || name_of.count(*number) == 0) {
      return BadState(absl::StrCat("has parameter ", ToString(key), ", which no group has"));
    }
    absl::StatusOr<ParameterState> parameter = ReadParameter(name_of[*number], entry);
    if (!parameter.ok()) return parameter.status();
    state.parameters.push_back(*std::move(parameter));
  }
  return state;
}

}  // namespace muster::trainer
