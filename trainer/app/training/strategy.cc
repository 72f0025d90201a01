#include "trainer/app/training/strategy.h"

#include <ATen/core/Tensor.h>

namespace muster::trainer {

std::unique_ptr<Strategy> MakeStrategy(const StrategyParts& parts) {
  switch (parts.options.parallel.kind) {
    case Parallel::kAverage:
      return MakeAveragingStrategy(parts);
    case Parallel::kThreads:
      return MakeThreadsStrategy(parts);
    case Parallel::kDdp:
      break;
  }
  return MakeDdpStrategy(parts);
}

std::int64_t PredictionsPerSample(const Batch& batch) {
  return batch.targets.dim() == 1 ? 1 : batch.targets.size(1);
}

Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype) {
  const bool images = batch.inputs.is_floating_point();
  return {images ? batch.inputs.to(device, dtype) : batch.inputs.to(device),
          batch.targets.to(device)};
}

}  // namespace muster::trainer
