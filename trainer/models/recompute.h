// Recomputation: memory for time. Chen et al., "Training Deep Nets with Sublinear Memory Cost",
// 2016.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// A stage whose activations are computed again when they are needed.
struct RecomputedStage {
  // Must compute the same from the same inputs whenever it is called, apart from what `buffers` do
  // to it: so it seeds random numbers itself.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // What `forward` may read and change, such as the statistics of batch normalization.
  std::vector<at::Tensor> buffers;
  // Whether it uses parameters that require a gradient.
  bool has_parameters = true;
};

// Returns stage.forward(inputs), of which nothing is kept for the backward pass but `inputs`. There
// the stage goes forward a second time, with the buffers and the autocast of the first, and then
// backward: gradients are the same, bit for bit, and buffers change once. Hooks of parameters run.
// Without gradients it is a plain forward. Throws what the stage throws, the second time from
// backward().
//
// Not for torch::autograd::grad() with parameters of the stage as its inputs: their gradients are
// added to grad() within the backward pass.
at::Tensor Recomputed(const at::Tensor& inputs, RecomputedStage stage);

// How a recomputed stage goes backward, instead of by backward(): from `outputs` with `gradient` to
// the gradient of `inputs`, which is returned, and which is not defined when nobody needs it.
using StageBackward = std::function<at::Tensor(
    const at::Tensor& outputs, const at::Tensor& gradient, const at::Tensor& inputs)>;

// While one exists, stages that go backward on this thread do so by `run`; it must outlive this.
// On a GPU, where LibTorch has threads of its own for that, it has no effect.
class StageBackwardScope {
 public:
  explicit StageBackwardScope(const StageBackward& run);
  ~StageBackwardScope();
  StageBackwardScope(const StageBackwardScope&) = delete;
  StageBackwardScope& operator=(const StageBackwardScope&) = delete;
};

}  // namespace muster::trainer
