#include "trainer/models/autocast.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "trainer/compat/model_operators.h"

namespace muster::trainer {

namespace {

at::DeviceType DeviceOf(bool cuda) {
  return cuda ? at::kCUDA : at::kCPU;
}

}  // namespace

Autocast::Autocast(std::optional<c10::ScalarType> type, bool cuda)
    : type_(type), cuda_(cuda), before_(type ? AutocastOf(cuda) : std::nullopt) {
  if (type_) compat::SetAutocast(DeviceOf(cuda_), *type_, true);
}

Autocast::~Autocast() {
  if (!type_) return;
  compat::SetAutocast(DeviceOf(cuda_), before_.value_or(*type_), before_.has_value());
  at::autocast::clear_cache();
}

std::optional<c10::ScalarType> AutocastOf(bool cuda) {
  return compat::AutocastType(DeviceOf(cuda));
}

UncachedCasts::UncachedCasts() : before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

UncachedCasts::~UncachedCasts() {
  at::autocast::set_autocast_cache_enabled(before_);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A stage's first pass, with everything the second one needs.
struct FirstPass : torch::CustomClassHolder {
  RecomputedStage stage;
  std::optional<c10::ScalarType> autocast;
  // The earlier values of the buffers that the pass has changed.
  std::vector<std::pair<std::size_t, at::Tensor>> before;
};

std::vector<at::Tensor> Copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

// While an instance exists, buffers have their values from before the first pass.
class BuffersBefore {
 public:
  explicit BuffersBefore(const FirstPass& first) : first_(first) {
    for (const auto& [index, before] : first_.before) {
      now_.push_back(Data(index).clone());
      Data(index).copy_(before);
    }
  }
  ~BuffersBefore() {
    for (std::size_t i = 0; i < now_.size(); ++i) Data(first_.before[i].first).copy_(now_[i]);
  }
  BuffersBefore(const BuffersBefore&) = delete;
  BuffersBefore& operator=(const BuffersBefore&) = delete;

 private:
  // The same memory with a separate version counter: a graph may hold the buffer, as batch
  // normalization's does, and would report a modification.
  at::Tensor Data(std::size_t index) const { return first_.stage.buffers[index].variable_data(); }

  const FirstPass& first_;
  std::vector<at::Tensor> now_;
};

at::Tensor BackwardInOne(const at::Tensor& outputs, const at::Tensor& gradient,
                         const at::Tensor& inputs) {
  torch::autograd::backward({outputs}, {gradient});
  return inputs.grad();
}

thread_local const StageBackward* stage_backward = nullptr;

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  // `anchor` requires a gradient, so that the result does even if the inputs do not.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& inputs,
                            const at::Tensor& /*anchor*/,
                            const c10::intrusive_ptr<FirstPass>& first) {
    context->save_for_backward({inputs});
    context->saved_data["first"] = c10::IValue::make_capsule(first);
    const RecomputedStage& stage = first->stage;
    first->autocast = AutocastOf(inputs.device().is_cuda());
    const std::vector<at::Tensor> before = Copies(stage.buffers);
    // A weight that was cast without gradients must not be found in the cache by a stage that needs
    // them.
    const UncachedCasts uncached;
    at::Tensor outputs = stage.forward(inputs);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (!before[i].equal(stage.buffers[i])) first->before.emplace_back(i, before[i]);
    }
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto first =
        c10::static_intrusive_pointer_cast<FirstPass>(context->saved_data["first"].toCapsule());
    const at::Tensor saved = context->get_saved_variables()[0];
    const at::Tensor inputs = saved.detach().requires_grad_(saved.requires_grad());
    const BuffersBefore buffers(*first);
    at::Tensor outputs;
    {
      const at::AutoGradMode with_gradients(true);
      const Autocast autocast(first->autocast, inputs.device().is_cuda());
      outputs = first->stage.forward(inputs);
    }
    at::Tensor of_inputs;
    if (outputs.requires_grad()) {  // the stage has not detached them
      of_inputs = stage_backward != nullptr ? (*stage_backward)(outputs, gradients[0], inputs)
                                            : BackwardInOne(outputs, gradients[0], inputs);
    }
    return {of_inputs, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

StageBackwardScope::StageBackwardScope(const StageBackward& run) {
  stage_backward = &run;
}

StageBackwardScope::~StageBackwardScope() {
  stage_backward = nullptr;
}

at::Tensor Recomputed(const at::Tensor& inputs, RecomputedStage stage) {
  const bool wanted = inputs.requires_grad() || stage.has_parameters;
  if (!at::GradMode::is_enabled() || !wanted) return stage.forward(inputs);
  const at::Tensor anchor =
      at::zeros({1}, at::TensorOptions().device(inputs.device())).requires_grad_();
  auto first = c10::make_intrusive<FirstPass>();
  first->stage = std::move(stage);
  return Recompute::apply(inputs, anchor, first);
}

}  // namespace muster::trainer
