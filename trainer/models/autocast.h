// Mixed precision: bfloat16 or float16 where that is sufficient.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace muster::trainer {

// While an instance exists, operators on this thread that benefit (convolutions, matrix products)
// compute in `type` on the CPU or the GPU, and the others in float32, as under torch.autocast with
// that dtype. Parameters and gradients stay float32. Cast weights are cached until the scope ends,
// so it must cover one forward pass and its loss, but not the optimizer's step. Nested instances
// restore the outer one.
class Autocast {
 public:
  // No effect without `type`, which is bfloat16 or, on a GPU, float16. `cuda`: whether the tensors
  // are on a GPU.
  Autocast(std::optional<c10::ScalarType> type, bool cuda);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const std::optional<c10::ScalarType> type_;
  const bool cuda_;
  const std::optional<c10::ScalarType> before_;
};

// The autocast type of this thread's operators, on a GPU or the CPU; nullopt: autocast is off.
std::optional<c10::ScalarType> AutocastOf(bool cuda);

// While an instance exists, this thread's cast weights are neither cached nor taken from the cache.
class UncachedCasts {
 public:
  UncachedCasts();
  ~UncachedCasts();
  UncachedCasts(const UncachedCasts&) = delete;
  UncachedCasts& operator=(const UncachedCasts&) = delete;

 private:
  const bool before_;
};

// Recomputation: memory for time. Chen et al., "Training Deep Nets with Sublinear Memory Cost",
// 2016.

// A stage whose activations are recomputed when needed.
struct RecomputedStage {
  // Must compute the same from the same inputs each time, apart from the effects of `buffers`: so
  // it seeds random numbers itself.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // State that `forward` may read and change, such as the statistics of batch normalization.
  std::vector<at::Tensor> buffers;
  // Whether it uses parameters that require a gradient.
  bool has_parameters = true;
};

// Returns stage.forward(inputs), but keeps only `inputs` for the backward pass. There the stage
// runs forward a second time, with the first pass's buffers and autocast, and then backward:
// gradients are the same, bit for bit, and buffers change once. Hooks of parameters run. Without
// gradients it is a plain forward. Throws what the stage throws, the second time from backward().
//
// Not for torch::autograd::grad() with parameters of the stage as its inputs: their gradients are
// added to grad() during the backward pass.
at::Tensor Recomputed(const at::Tensor& inputs, RecomputedStage stage);

// An alternative to backward() for a recomputed stage: from `outputs` with `gradient` to the
// gradient of `inputs`, which is returned, and undefined if not needed.
using StageBackward = std::function<at::Tensor(
    const at::Tensor& outputs, const at::Tensor& gradient, const at::Tensor& inputs)>;

// While an instance exists, stages that go backward on this thread use `run`; it must outlive this.
// No effect on a GPU, where LibTorch uses its own threads for that.
class StageBackwardScope {
 public:
  explicit StageBackwardScope(const StageBackward& run);
  ~StageBackwardScope();
  StageBackwardScope(const StageBackwardScope&) = delete;
  StageBackwardScope& operator=(const StageBackwardScope&) = delete;
};

}  // namespace muster::trainer
