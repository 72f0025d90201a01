// What a rank keeps from step to step, measured beside the formula.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trainer/compat/tensor_memory.h"
#include "trainer/optim/optimizer_options.h"

namespace muster::trainer {

// Bytes of parameters, gradients, the optimizer's state and averages; 0 where nothing is known.
struct StateMemory {
  std::int64_t counted = 0;  // by the allocator of tensors, with whatever else came with training
  std::int64_t formula = 0;  // StateBytes()
};

// The numbers that are kept for each parameter besides it and its gradient: by an optimizer, and
// the average of --ema if there is one.
inline int KeptNumbers(const OptimizerOptions& optimizer, bool averaged) {
  const int average = averaged ? 1 : 0;
  if (optimizer.kind == OptimizerKind::kAdamW) return 2 + average;
  return (optimizer.momentum > 0 ? 1 : 0) + average;
}

// Counts what has come since it was made, and the parameters of `parameter_bytes` that were there
// already. On the CPU alone. One thread.
class StateMeter {
 public:
  explicit StateMeter(std::int64_t parameter_bytes)
      : others_(compat::TensorBytes() - parameter_bytes) {}

  // Call it when a backward pass has ended and activations are gone. The first one comes before an
  // optimizer has its state; of the others the least counts, as threads of Gloo's and of loaders
  // may hold what they are done with for a moment more.
  void Measure() {
    const std::int64_t now = compat::TensorBytes() - others_;
    bytes_ = ++measured_ <= 2 ? now : std::min(bytes_, now);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t others_;
  int measured_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace muster::trainer
