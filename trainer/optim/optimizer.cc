#include "trainer/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <variant>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/optim/algorithms.h"
#include "trainer/optim/one_pass.h"

namespace muster::trainer {

double LearningRateAt(const ScheduleOptions& options, std::int64_t step) {
  const double base = options.learning_rate;
  if (step < options.warmup_steps) {
    const double share = static_cast<double>(step) / static_cast<double>(options.warmup_steps);
    return base * (options.warmup_start + (1 - options.warmup_start) * share);
  }
  if (options.own) return base * options.own(step, options.total_steps);
  const std::int64_t since = step - options.warmup_steps;
  switch (options.kind) {
    case ScheduleKind::kConstant:
      return base;
    case ScheduleKind::kStep:
      return base * std::pow(options.gamma, static_cast<double>(since / options.step_size));
    case ScheduleKind::kCosine: {
      const std::int64_t all = options.total_steps - options.warmup_steps;
      if (since >= all) return options.minimum;
      const double angle = std::numbers::pi * static_cast<double>(since) / static_cast<double>(all);
      return options.minimum + (base - options.minimum) * (1 + std::cos(angle)) / 2;
    }
  }
  return base;
}

absl::Status CheckSchedule(const ScheduleOptions& options) {
  const auto bad = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("schedule the learning rate: ", why...));
  };
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    return bad("it is ", options.learning_rate, ", and must be above 0; give another --lr");
  }
  if (options.warmup_steps < 0) return bad("a warm-up of ", options.warmup_steps, " steps");
  if (!(options.warmup_start > 0 && options.warmup_start <= 1)) {
    return bad("a warm-up from ", options.warmup_start,
               " times the learning rate, which must be above 0 and at most 1");
  }
  if (options.own) return absl::OkStatus();
  if (options.kind == ScheduleKind::kStep) {
    if (options.step_size < 1) {
      return bad("it cannot fall every ", options.step_size, " steps");
    }
    if (!(options.gamma > 0 && options.gamma <= 1)) {
      return bad("a factor of ", options.gamma, ", which must be above 0 and at most 1");
    }
  }
  if (options.kind == ScheduleKind::kCosine) {
    if (options.total_steps <= options.warmup_steps) {
      return bad("a cosine over ", options.total_steps, " steps, of which ", options.warmup_steps,
                 " are warm-up");
    }
    if (!(options.minimum >= 0 && options.minimum <= options.learning_rate)) {
      return bad("a minimum of ", options.minimum, ", which must be from 0 to the learning rate");
    }
  }
  return absl::OkStatus();
}

namespace {

absl::Status Check(const OptimizerOptions& options) {
  const auto bad = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("make the optimizer: ", why...));
  };
  if (!(options.weight_decay >= 0)) {
    return bad("a weight decay of ", options.weight_decay, ", which must be at least 0");
  }
  if (options.own.rule) return absl::OkStatus();
  if (options.kind == OptimizerKind::kSgd) {
    if (!(options.momentum >= 0)) {
      return bad("a momentum of ", options.momentum, ", which must be at least 0");
    }
    if (options.nesterov && options.momentum == 0)
      return bad("Nesterov momentum needs a momentum above 0");
    return absl::OkStatus();
  }
  for (const double beta : {options.beta1, options.beta2}) {
    if (!(beta >= 0 && beta < 1)) {
      return bad("a beta of ", beta, ", which must be at least 0 and below 1");
    }
  }
  if (!(options.epsilon >= 0)) {
    return bad("an epsilon of ", options.epsilon, ", which must be at least 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         std::vector<NamedTensor> parameters) {
  const absl::Status checked = Check(options);
  if (!checked.ok()) return checked;
  if (std::none_of(parameters.begin(), parameters.end(),
                   [](const NamedTensor& one) { return one.tensor.requires_grad(); })) {
    return absl::InvalidArgumentError(absl::StrCat(
        "make the optimizer: none of the model's ", parameters.size(),
        " parameters requires a gradient, so there is nothing to train; register parameters, or "
        "leave some of them unfrozen (requires_grad)"));
  }
  return MakePartOptimizer(options, std::move(parameters));
}

std::unique_ptr<Optimizer> MakePartOptimizer(const OptimizerOptions& options,
                                             std::vector<NamedTensor> parameters) {
  if (options.own.rule) return std::make_unique<OwnOptimizer>(options, std::move(parameters));
  if (options.kind == OptimizerKind::kSgd) {
    return std::make_unique<Sgd>(options, std::move(parameters));
  }
  return std::make_unique<AdamW>(options, std::move(parameters));
}

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

// The tensors of one parameter in the state.
absl::StatusOr<ParameterState> ReadParameter(const std::string& name, const Value& value) {
  if (value.dict() == nullptr) return BadState(absl::StrCat("has no dict for ", name));
  ParameterState state{.parameter = name, .tensors = {}};
  for (const auto& [key, entry] : *value.dict()) {
    const auto* word = std::get_if<std::string>(&key);
    // Python stores None for a buffer that was never created.
    if (word == nullptr || entry.is_none()) continue;
    if (entry.tensor() == nullptr) return BadState(absl::StrCat("of ", name, " is not a tensor"));
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

Value NamesValue(const std::vector<std::string>& names) {
  Value::List list;
  for (const std::string& name : names) list.emplace_back(name);
  return list;
}

absl::StatusOr<std::vector<std::string>> ReadNames(const Value& value) {
  const absl::Status other =
      absl::InvalidArgumentError("its list of names holds something other than names");
  if (value.list() == nullptr) return other;
  std::vector<std::string> names;
  for (const Value& name : *value.list()) {
    if (name.string() == nullptr) return other;
    names.push_back(*name.string());
  }
  return names;
}

namespace {

// Below this many elements a thread costs more than it saves.
constexpr std::int64_t kEmaGrain = 32768;

template <typename T>
void FollowInMemory(const at::Tensor& parameter, const at::Tensor& average, double decay) {
  at::parallel_for(0, parameter.numel(), kEmaGrain, [&](std::int64_t begin, std::int64_t end) {
    EmaOnePass(decay, end - begin, parameter.data_ptr<T>() + begin, average.data_ptr<T>() + begin);
  });
}

}  // namespace

Ema::Ema(const std::vector<NamedTensor>& parameters, double decay)
    : parameters_(parameters), decay_(decay) {
  for (const NamedTensor& parameter : parameters) {
    averages_.push_back({parameter.name, parameter.tensor.detach().clone()});
  }
}

void Ema::Restart() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    averages_[i].tensor.copy_(parameters_[i].tensor);
  }
}

void Ema::Update() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters;  // those that are on a GPU
  std::vector<at::Tensor> averages;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    const at::Tensor& average = averages_[i].tensor;
    if (!parameter.requires_grad()) continue;  // it never changes, and may be of integers
    const bool plain = parameter.device().is_cpu() && parameter.is_non_overlapping_and_dense() &&
                       parameter.strides() == average.strides();
    if (plain && parameter.scalar_type() == at::kFloat) {
      FollowInMemory<float>(parameter, average, decay_);
    } else if (plain && parameter.scalar_type() == at::kDouble) {
      FollowInMemory<double>(parameter, average, decay_);
    } else if (parameter.is_cuda()) {
      parameters.push_back(parameter.detach());
      averages.push_back(average);
    } else {
      average.lerp_(parameter, 1 - decay_);
    }
  }
  if (averages.empty()) return;
  at::_foreach_mul_(averages, at::Scalar(decay_));
  at::_foreach_add_(averages, parameters, at::Scalar(1 - decay_));
}

void Ema::Swap() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor parameter = parameters_[i].tensor.clone();
    parameters_[i].tensor.copy_(averages_[i].tensor);
    averages_[i].tensor.copy_(parameter);
  }
}

}  // namespace muster::trainer
