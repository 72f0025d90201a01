#include "trainer/optim/grouped.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

// Below this many elements a thread costs more than it saves.
constexpr std::int64_t kGrain = 32768;

absl::Status Bad(const std::string& parameter, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("load the optimizer's state of ", parameter, ": ", why));
}

bool SameLayout(const at::Tensor& a, const at::Tensor& b) {
  return b.defined() && b.device() == a.device() && b.scalar_type() == a.scalar_type() &&
         b.layout() == a.layout() && b.sizes() == a.sizes() && b.strides() == a.strides();
}

}  // namespace

GroupedOptimizer::GroupedOptimizer(const OptimizerOptions& options,
                                   std::vector<NamedTensor> parameters,
                                   std::vector<std::string> remembered)
    : options_(options), remembered_(std::move(remembered)) {
  // The group excluded by --no-decay-vectors comes last; before it, groups are in the order in
  // which their settings first occur.
  struct Group {
    bool decays = true;
    ParameterSettings settings;
    std::vector<NamedTensor> parameters;
  };
  std::vector<Group> groups;
  for (NamedTensor& parameter : parameters) {
    const bool decays = options_.decay_vectors || parameter.tensor.dim() > 1;
    ParameterSettings settings;
    if (options_.own.settings_of) settings = options_.own.settings_of(parameter.name);
    const auto same = [&](const Group& group) {
      return group.decays == decays && group.settings == settings;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) {
      groups.push_back({decays, settings, {}});
      group = std::prev(groups.end());
    }
    group->parameters.push_back(std::move(parameter));
  }
  std::stable_partition(groups.begin(), groups.end(), [](const Group& one) { return one.decays; });
  for (Group& group : groups) {
    group_begins_.push_back(entries_.size());
    const double decay = group.decays ? options_.weight_decay : 0;
    for (NamedTensor& parameter : group.parameters) {
      entries_.push_back({.name = std::move(parameter.name),
                          .parameter = std::move(parameter.tensor),
                          .weight_decay = group.settings.weight_decay.value_or(decay),
                          .lr_scale = group.settings.lr_scale,
                          .remembered = std::vector<at::Tensor>(remembered_.size())});
    }
  }
}

void GroupedOptimizer::Step(double lr) {
  const at::NoGradGuard no_grad;
  std::vector<Entry*> together;
  for (Entry& entry : entries_) {
    if (!entry.parameter.grad().defined()) continue;
    ++entry.steps;
    if (TakesForeach(entry)) {
      together.push_back(&entry);
    } else {
      Update(entry, lr * entry.lr_scale);
    }
  }
  if (!together.empty()) UpdateTogether(together, lr);
}

bool GroupedOptimizer::TakesForeach(const Entry& entry) const {
  const bool fastest = options_.path == OptimizerPath::kOnePass && entry.parameter.is_cuda();
  return (fastest || options_.path == OptimizerPath::kForeach) &&
         entry.parameter.is_floating_point() && !entry.parameter.grad().is_sparse();
}

void GroupedOptimizer::UpdateTogether(const std::vector<Entry*>& entries, double lr) {
  using Kind = std::tuple<double, std::int64_t, bool, at::ScalarType, double>;
  std::map<Kind, std::vector<Entry*>> kinds;
  for (Entry* const entry : entries) {
    const bool first = !remembered_.empty() && !entry->remembered[0].defined();
    kinds[{entry->weight_decay, counts_steps() ? entry->steps : 0, first,
           entry->parameter.scalar_type(), entry->lr_scale}]
        .push_back(entry);
  }
  for (const auto& [kind, same] : kinds) {
    Alike alike = {.weight_decay = std::get<0>(kind),
                   .steps = std::get<1>(kind),
                   .first = std::get<2>(kind),
                   .remembered = std::vector<std::vector<at::Tensor>>(remembered_.size())};
    for (const Entry* const entry : same) {
      alike.parameters.push_back(entry->parameter.detach());
      alike.gradients.push_back(entry->parameter.grad().detach());
      for (std::size_t i = 0; i < remembered_.size(); ++i) {
        alike.remembered[i].push_back(entry->remembered[i]);
      }
    }
    UpdateAlike(alike, lr * std::get<4>(kind));
    if (!alike.first) continue;
    for (std::size_t place = 0; place < same.size(); ++place) {
      for (std::size_t i = 0; i < remembered_.size(); ++i) {
        same[place]->remembered[i] = alike.remembered[i][place];
      }
    }
  }
}

std::vector<std::string> GroupedOptimizer::Order() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

OptimizerState GroupedOptimizer::State(double lr) const {
  OptimizerState state;
  for (std::size_t group = 0; group < group_begins_.size(); ++group) {
    const std::size_t begin = group_begins_[group];
    const std::size_t end =
        group + 1 < group_begins_.size() ? group_begins_[group + 1] : entries_.size();
    const Entry& first = entries_[begin];
    GroupState& saved = state.groups.emplace_back();
    saved.options = Describe(lr * first.lr_scale, first.weight_decay);
    for (std::size_t i = begin; i < end; ++i) saved.parameters.push_back(entries_[i].name);
  }
  for (const Entry& entry : entries_) {
    if (entry.steps == 0 || (remembered_.empty() && !counts_steps())) continue;
    ParameterState remembered{.parameter = entry.name};
    if (counts_steps()) {
      remembered.tensors.push_back(
          {"step", at::scalar_tensor(static_cast<double>(entry.steps), at::kFloat)});
    }
    for (std::size_t i = 0; i < remembered_.size(); ++i) {
      remembered.tensors.push_back({remembered_[i], entry.remembered[i]});
    }
    state.parameters.push_back(std::move(remembered));
  }
  return state;
}

absl::Status GroupedOptimizer::Load(const OptimizerState& state) {
  // Into a copy first, so that an error changes nothing.
  std::vector<Entry> entries = entries_;
  std::unordered_map<std::string, Entry*> by_name;
  for (Entry& entry : entries) {
    entry.steps = 0;
    entry.remembered.assign(remembered_.size(), at::Tensor());
    by_name[entry.name] = &entry;
  }
  for (const ParameterState& parameter : state.parameters) {
    const auto found = by_name.find(parameter.parameter);
    if (found == by_name.end()) return Bad(parameter.parameter, "there is no such parameter");
    const absl::Status restored = Restore(parameter, found->second);
    if (!restored.ok()) return restored;
  }
  entries_ = std::move(entries);
  return absl::OkStatus();
}

absl::Status GroupedOptimizer::Restore(const ParameterState& state, Entry* entry) const {
  // Python keeps no state for a parameter that SGD moved without momentum.
  if (state.tensors.empty()) return absl::OkStatus();
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(state.tensors.begin(), state.tensors.end(),
                                    [&](const NamedTensor& item) { return item.name == name; });
    return found == state.tensors.end() ? at::Tensor() : found->tensor;
  };
  entry->steps = 1;
  if (counts_steps()) {
    const at::Tensor step = find("step");
    if (!step.defined() || step.numel() != 1) return Bad(entry->name, "it lacks the step");
    const double steps = step.item<double>();
    // Also false for NaN; the upper bound is far from overflow.
    if (!(steps >= 1 && steps <= 1e15)) {
      return Bad(entry->name, absl::StrCat("step ", steps, " is not one"));
    }
    entry->steps = static_cast<std::int64_t>(steps);
  }
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < remembered_.size(); ++i) {
    const at::Tensor saved = find(remembered_[i]);
    if (!saved.defined()) return Bad(entry->name, absl::StrCat("it lacks ", remembered_[i]));
    if (saved.sizes() != entry->parameter.sizes()) {
      return Bad(entry->name, absl::StrCat(remembered_[i], " has another shape"));
    }
    entry->remembered[i] = at::empty_like(entry->parameter).copy_(saved);
  }
  return absl::OkStatus();
}

bool GroupedOptimizer::OnePass(const Entry& entry, at::Tensor* gradient) const {
  const at::Tensor& parameter = entry.parameter;
  if (options_.path != OptimizerPath::kOnePass || !parameter.device().is_cpu() ||
      !parameter.is_non_overlapping_and_dense() || gradient->is_sparse() ||
      (parameter.scalar_type() != at::kFloat && parameter.scalar_type() != at::kDouble)) {
    return false;
  }
  for (const at::Tensor& remembered : entry.remembered) {
    if (!SameLayout(parameter, remembered)) return false;
  }
  if (!SameLayout(parameter, *gradient)) *gradient = at::empty_like(parameter).copy_(*gradient);
  return true;
}

void GroupedOptimizer::InParallel(std::int64_t count,
                                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  at::parallel_for(0, count, kGrain, body);
}

}  // namespace muster::trainer
