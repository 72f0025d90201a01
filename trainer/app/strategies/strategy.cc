#include "trainer/app/strategies/strategy.h"

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
  std::int64_t predictions = 1;
  for (std::int64_t dim = 1; dim < batch.targets.dim(); ++dim) {
    predictions *= batch.targets.size(dim);
  }
  return predictions;
}

Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype) {
  const auto moved = [&](const at::Tensor& tensor) {
    return tensor.is_floating_point() ? tensor.to(device, dtype) : tensor.to(device);
  };
  return {moved(batch.inputs), moved(batch.targets)};
}

}  // namespace muster::trainer
