#include "trainer/app/strategies/batch_sums.h"

#include <ATen/core/grad_mode.h>

#include "trainer/models/autocast.h"
#include "trainer/models/loss.h"

namespace muster::trainer {

BatchSums MeasureBatch(const LoadedBatch& batch, const Options& options, const at::Device& device,
                       Model& model) {
  return MeasureScores(batch, options, device,
                       [&model](const at::Tensor& inputs) { return model.Forward(inputs); });
}

BatchSums MeasureScores(const LoadedBatch& batch, const Options& options, const at::Device& device,
                        const std::function<at::Tensor(const at::Tensor& inputs)>& compute) {
  const at::NoGradGuard no_grad;
  const Batch moved = MovedTo(batch.data, device, options.dtype);
  const Autocast autocast(options.autocast_type(), device.is_cuda());
  const at::Tensor scores = compute(moved.inputs).narrow(0, 0, batch.plan.own);
  const at::Tensor targets = moved.targets.narrow(0, 0, batch.plan.own);
  const Objective& objective = options.model.objective;
  BatchSums sums = {.predictions = static_cast<double>(CountPredictions(targets)),
                    .loss = objective.loss(scores, targets)};
  for (const Metric& metric : objective.metrics) {
    sums.metrics.push_back(metric.sum(scores, targets));
  }
  return sums;
}

Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype) {
  const auto moved = [&](const at::Tensor& tensor) {
    return tensor.is_floating_point() ? tensor.to(device, dtype) : tensor.to(device);
  };
  return {moved(batch.inputs), moved(batch.targets)};
}

}  // namespace muster::trainer
