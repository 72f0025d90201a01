#include "trainer/parallel/sharded_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::trainer {
namespace {

using torch::autograd::variable_list;

constexpr std::size_t kMostNameBytes = 256;
constexpr char kStep[] = "step";  // the only scalar in an optimizer's state

const at::Tensor* FindNamed(const std::vector<NamedTensor>& named, const std::string& name) {
  const auto found = std::find_if(named.begin(), named.end(),
                                  [&](const NamedTensor& one) { return one.name == name; });
  return found == named.end() ? nullptr : &found->tensor;
}

// The identity; its backward first calls the function at address `before`.
struct BeforeBackward : torch::autograd::Function<BeforeBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            std::int64_t before) {
    context->saved_data["before"] = before;
    return x.view_as(x);
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& gradients) {
    const std::int64_t before = context->saved_data["before"].toInt();
    (*reinterpret_cast<const std::function<void()>*>(before))();
    return {gradients[0], at::Tensor()};
  }
};

}  // namespace

struct ShardedParameters::Unit {
  Unit(std::vector<NamedTensor> parameters, Group& group, bool own)
      : flat(std::move(parameters), group, own), missing(flat.parameters().size()) {}

  FlatUnit flat;
  at::Tensor gradient;  // of the part, since the start of the step
  std::size_t missing;  // gradients of this backward pass
  std::function<void()> before_backward;
  // Held, as an accumulator without owner would be recreated without its hooks.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;
};

ShardedParameters::ShardedParameters(std::vector<std::vector<NamedTensor>> units, Shard shard,
                                     Group& group)
    : shard_(shard), group_(group) {
  for (std::vector<NamedTensor>& parameters : units) {
    if (parameters.empty()) {
      units_.push_back(nullptr);
      continue;
    }
    units_.push_back(
        std::make_unique<Unit>(std::move(parameters), group, shard == Shard::kParameters));
    Unit& unit = *units_.back();
    for (const FlatSlice& slice : unit.flat.slices()) {
      shards_.push_back({unit.flat.parameters()[slice.parameter].name,
                         SliceOf(unit, slice, unit.flat.part()).requires_grad_(true)});
    }
    const std::size_t index = units_.size() - 1;
    unit.before_backward = [this, index] {
      units_[index]->flat.Gather();
      if (index > 0 && units_[index - 1]) units_[index - 1]->flat.StartGather();
    };
    if (shard == Shard::kOptimizer) continue;
    for (const NamedTensor& parameter : unit.flat.parameters()) {
      auto accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
      accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [this, &unit](const variable_list& outputs, const variable_list&) {
            if (--unit.missing == 0) ReduceComplete();
            return outputs;
          }));
      unit.accumulators.push_back(std::move(accumulator));
    }
  }
  reduced_from_ = units_.size();
  if (shard == Shard::kParameters) {
    for (const auto& unit : units_) {
      if (unit) unit->flat.Free();
    }
  }
}

ShardedParameters::~ShardedParameters() = default;

at::Tensor ShardedParameters::SliceOf(const Unit& unit, const FlatSlice& slice,
                                      const at::Tensor& part) const {
  std::vector<std::int64_t> sizes(
      std::max<std::size_t>(
          1, static_cast<std::size_t>(unit.flat.parameters()[slice.parameter].tensor.dim())),
      1);
  sizes.back() = slice.count;
  return part.narrow(0, slice.at, slice.count).view(sizes);
}

at::Tensor ShardedParameters::Run(std::size_t unit, const std::function<at::Tensor()>& forward) {
  if (!units_[unit]) return forward();
  Unit& own = *units_[unit];
  own.flat.Gather();
  if (unit + 1 < units_.size() && units_[unit + 1]) units_[unit + 1]->flat.StartGather();
  at::Tensor outputs = forward();
  if (shard_ != Shard::kParameters) return outputs;
  if (outputs.requires_grad()) {
    outputs = BeforeBackward::apply(outputs, reinterpret_cast<std::int64_t>(&own.before_backward));
  }
  own.flat.Free();
  return outputs;
}

void ShardedParameters::ReduceComplete() {
  while (reduced_from_ > 0) {
    Unit* const next = units_[reduced_from_ - 1].get();
    if (next != nullptr && next->missing > 0) return;
    --reduced_from_;
    if (next != nullptr) Reduce(*next);
  }
}

void ShardedParameters::Reduce(Unit& unit) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = unit.flat.ReduceGradients();
  unit.gradient = unit.gradient.defined() ? unit.gradient.add_(gradient) : gradient;
  if (shard_ == Shard::kParameters) unit.flat.Free();
}

void ShardedParameters::EndBackward() {
  if (shard_ == Shard::kOptimizer) return;
  // Units with gradients for some parameters, or for none.
  for (; reduced_from_ > 0; --reduced_from_) {
    if (units_[reduced_from_ - 1]) Reduce(*units_[reduced_from_ - 1]);
  }
  reduced_from_ = units_.size();
  for (const auto& unit : units_) {
    if (unit) unit->missing = unit->flat.parameters().size();
  }
}

void ShardedParameters::Finish() {
  std::size_t shard = 0;
  for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) {
    if (*unit && shard_ == Shard::kOptimizer) Reduce(**unit);
  }
  for (const auto& unit : units_) {
    if (!unit) continue;
    for (const FlatSlice& slice : unit->flat.slices()) {
      shards_[shard++].tensor.mutable_grad() = SliceOf(*unit, slice, unit->gradient);
    }
    unit->gradient.reset();
  }
}

void ShardedParameters::Changed() {
  for (NamedTensor& shard : shards_) shard.tensor.mutable_grad().reset();
  for (const auto& unit : units_) {
    if (unit) unit->flat.Forget();
  }
}

void ShardedParameters::GatherAll() {
  for (const auto& unit : units_) {
    if (unit) unit->flat.Gather();
  }
}

double ShardedParameters::SquaredNorm() const {
  double sum = 0;
  for (const NamedTensor& shard : shards_) {
    const at::Tensor& gradient = shard.tensor.grad();
    if (gradient.defined()) sum += gradient.to(at::kDouble).square().sum().item<double>();
  }
  return sum;
}

at::Tensor ShardedParameters::Packed(
    const Unit& unit, const std::function<at::Tensor(const std::string&)>& find) const {
  const at::NoGradGuard no_grad;
  const at::Tensor part = at::zeros_like(unit.flat.part());
  for (const FlatSlice& slice : unit.flat.slices()) {
    const at::Tensor mine = find(unit.flat.parameters()[slice.parameter].name);
    if (mine.defined()) SliceOf(unit, slice, part).copy_(mine);
  }
  return part;
}

std::vector<NamedTensor> ShardedParameters::Whole(const std::vector<NamedTensor>& of_shards) const {
  std::unordered_map<std::string, at::Tensor> by_name;
  for (const NamedTensor& one : of_shards) by_name[one.name] = one.tensor;
  std::vector<NamedTensor> whole;
  for (const auto& unit : units_) {
    if (!unit) continue;
    const std::vector<at::Tensor> tensors =
        unit->flat.WholeOf(Packed(*unit, [&](const std::string& name) { return by_name[name]; }));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      whole.push_back({unit->flat.parameters()[i].name, tensors[i]});
    }
  }
  return whole;
}

void ShardedParameters::TakePart(const std::vector<NamedTensor>& whole,
                                 const std::vector<NamedTensor>& of_shards) const {
  const at::NoGradGuard no_grad;
  std::unordered_map<std::string, at::Tensor> by_name;
  for (const NamedTensor& one : whole) by_name[one.name] = one.tensor;
  std::size_t shard = 0;
  for (const auto& unit : units_) {
    if (!unit) continue;
    std::vector<at::Tensor> tensors;
    for (const NamedTensor& parameter : unit->flat.parameters()) {
      tensors.push_back(by_name[parameter.name]);
    }
    const at::Tensor part = unit->flat.PartOf(tensors);
    for (const FlatSlice& slice : unit->flat.slices()) {
      at::Tensor mine = of_shards[shard++].tensor;
      mine.copy_(SliceOf(*unit, slice, part));
    }
  }
}

std::vector<ParameterState> ShardedParameters::WholeState(
    const std::vector<ParameterState>& mine) const {
  std::unordered_map<std::string, const ParameterState*> own;
  for (const ParameterState& state : mine) own[state.parameter] = &state;
  const auto find = [&own](const std::string& parameter, const std::string& tensor) {
    const auto found = own.find(parameter);
    const at::Tensor* const there =
        found == own.end() ? nullptr : FindNamed(found->second->tensors, tensor);
    return there == nullptr ? at::Tensor() : *there;
  };

  // A rank may own nothing, and not know the names.
  std::string names;
  if (!mine.empty()) {
    names = absl::StrJoin(mine.front().tensors, ",", [](std::string* text, const auto& tensor) {
      absl::StrAppend(text, tensor.name);
    });
  }
  for (const std::string& others : group_.Gather(names, kMostNameBytes)) {
    if (names.empty()) names = others;
  }
  if (names.empty()) return {};
  // The owner of a parameter's first element tells the others its step.
  std::vector<double> steps;
  for (const auto& unit : units_) {
    if (!unit) continue;
    const std::size_t first = steps.size();
    steps.resize(first + unit->flat.parameters().size());
    for (const FlatSlice& slice : unit->flat.slices()) {
      const at::Tensor step = find(unit->flat.parameters()[slice.parameter].name, kStep);
      if (slice.begin == 0 && step.defined()) steps[first + slice.parameter] = step.item<double>();
    }
  }
  steps = group_.Sum(steps);

  std::vector<ParameterState> whole;
  std::size_t at = 0;
  for (const auto& unit : units_) {
    if (!unit) continue;
    const std::size_t first = whole.size();
    for (const NamedTensor& parameter : unit->flat.parameters()) whole.push_back({parameter.name});
    for (const absl::string_view name : absl::StrSplit(names, ',')) {
      const std::string tensor(name);
      if (tensor == kStep) {
        for (std::size_t i = first; i < whole.size(); ++i) {
          whole[i].tensors.push_back({tensor, at::scalar_tensor(steps[at++], at::kFloat)});
        }
        continue;
      }
      const std::vector<at::Tensor> values = unit->flat.WholeOf(
          Packed(*unit, [&](const std::string& parameter) { return find(parameter, tensor); }));
      for (std::size_t i = 0; i < values.size(); ++i) {
        whole[first + i].tensors.push_back({tensor, values[i]});
      }
    }
  }
  return whole;
}

std::vector<ParameterState> ShardedParameters::PartOfState(
    const std::vector<ParameterState>& whole) const {
  std::unordered_map<std::string, const ParameterState*> by_name;
  for (const ParameterState& state : whole) by_name[state.parameter] = &state;
  std::vector<ParameterState> mine;
  for (const auto& unit : units_) {
    if (!unit) continue;
    const std::vector<NamedTensor>& parameters = unit->flat.parameters();
    std::map<std::string, at::Tensor> parts;  // by name in the state
    const auto part_of = [&](const std::string& tensor) -> const at::Tensor& {
      const auto [part, is_new] = parts.try_emplace(tensor);
      if (!is_new) return part->second;
      std::vector<at::Tensor> values;
      for (const NamedTensor& parameter : parameters) {
        const auto state = by_name.find(parameter.name);
        const at::Tensor* const value =
            state == by_name.end() ? nullptr : FindNamed(state->second->tensors, tensor);
        values.push_back(value == nullptr ? at::Tensor() : *value);
      }
      part->second = unit->flat.PartOf(values);
      return part->second;
    };
    for (const FlatSlice& slice : unit->flat.slices()) {
      const auto state = by_name.find(parameters[slice.parameter].name);
      if (state == by_name.end()) continue;
      ParameterState own{.parameter = state->first};
      for (const NamedTensor& tensor : state->second->tensors) {
        own.tensors.push_back({tensor.name, tensor.name == kStep
                                                ? tensor.tensor
                                                : SliceOf(*unit, slice, part_of(tensor.name))});
      }
      mine.push_back(std::move(own));
    }
  }
  return mine;
}

std::int64_t ShardedParameters::parameter_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& unit : units_) {
    if (unit) bytes += unit->flat.bytes();
  }
  return bytes;
}

std::int64_t ShardedParameters::FormulaBytes() const {
  const std::int64_t passes = shard_ == Shard::kParameters ? 3 : 2;
  return passes * (group_.size() - 1) * parameter_bytes() / group_.size();
}

}  // namespace muster::trainer
