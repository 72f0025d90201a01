#include "trainer/app/strategies/strategy.h"

#include <algorithm>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "trainer/app/strategies/replica_strategy.h"
#include "trainer/compat/torch_version.h"
#include "trainer/models/autocast.h"
#include "trainer/models/objective.h"
#include "trainer/quant/qat_network.h"

namespace muster::trainer {

BatchSums MeasureBatch(const LoadedBatch& batch, const Options& options, const at::Device& device,
                       Model& model) {
  return MeasureScores(batch, options, device, [&model](const Batch& moved) {
    model.SetOthers(moved.others);
    return model.Forward(moved.inputs);
  });
}

BatchSums MeasureScores(const LoadedBatch& batch, const Options& options, const at::Device& device,
                        const std::function<at::Tensor(const Batch& batch)>& compute) {
  const at::NoGradGuard no_grad;
  const Batch moved = MovedTo(batch.data, device, options.dtype);
  const Autocast autocast(options.autocast_type(), device.is_cuda());
  const at::Tensor scores = compute(moved).narrow(0, 0, batch.plan.own);
  const Batch own = BatchRows(moved, 0, batch.plan.own);
  const Objective& objective = options.model.objective;
  BatchSums sums = {.predictions = static_cast<double>(CountPredictions(own.targets)),
                    .loss = objective.LossOf(scores, own.targets, own.others)};
  for (const Metric& metric : objective.metrics) {
    sums.metrics.push_back(metric.SumOf(scores, own.targets, own.others));
  }
  return sums;
}

Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype) {
  const auto moved = [&](const at::Tensor& tensor) {
    return tensor.is_floating_point() ? tensor.to(device, dtype) : tensor.to(device);
  };
  Batch there = {moved(batch.inputs), moved(batch.targets)};
  for (const at::Tensor& other : batch.others) there.others.push_back(moved(other));
  return there;
}

std::int64_t TensorBytes(const std::vector<NamedTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const NamedTensor& one : tensors) bytes += static_cast<std::int64_t>(one.tensor.nbytes());
  return bytes;
}

std::int64_t PredictionsPerSample(const Batch& batch) {
  std::int64_t predictions = 1;
  for (std::int64_t dim = 1; dim < batch.targets.dim(); ++dim) {
    predictions *= batch.targets.size(dim);
  }
  return predictions;
}

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const Options& given,
                                                       std::unique_ptr<Model> model, World& world,
                                                       PhaseTracker& phases) {
  Options options = given;
  options.optimizer.interpolate_mean = compat::kAdamWInterpolatesMean;
  options.optimizer.root_is_power = compat::kAdamWRootIsPower;
  if (options.parallel.shares_model()) {
    return MakeMeshStrategy(options, std::move(model), world, phases);
  }
  if (options.qat.on && !world.device().is_cpu()) {
    return absl::InvalidArgumentError("--qat runs on the CPU; add --comm gloo");
  }
  auto optimizer = MakeOptimizer(options.optimizer, model->Parameters());
  if (!optimizer.ok()) return optimizer.status();
  StrategyParts parts = {options, std::move(model), *std::move(optimizer), world.all(), phases};
  switch (options.parallel.kind) {
    case Parallel::kAverage:
      return MakeAveragingStrategy(std::move(parts));
    case Parallel::kThreads:
      return MakeThreadsStrategy(std::move(parts));
    case Parallel::kDdp:
      break;
  }
  return MakeDdpStrategy(std::move(parts));
}

absl::Status LoadModel(const Value& saved, const std::vector<NamedTensor>& tensors,
                       Optimizer& optimizer) {
  const Value* model = saved.Find("model");
  const Value* state = saved.Find("optimizer");
  if (model == nullptr || state == nullptr) {
    return absl::InvalidArgumentError("it has no model with an optimizer");
  }
  const absl::Status loaded = LoadStateDict(*model, tensors).status();
  if (!loaded.ok()) return loaded;
  const absl::StatusOr<OptimizerState> read = ReadOptimizerState(*state);
  return read.ok() ? optimizer.Load(*read) : read.status();
}

std::vector<MicroBatch> SplitUp(const LoadedBatch& batch, std::int64_t parts) {
  const auto samples = static_cast<std::int64_t>(batch.plan.indices.size());
  parts = std::min(parts, samples);
  std::vector<MicroBatch> split;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = samples * part / parts;
    const std::int64_t count = samples * (part + 1) / parts - begin;
    split.push_back({.batch = BatchRows(batch.data, begin, count),
                     .own = std::clamp<std::int64_t>(batch.plan.own - begin, 0, count),
                     .index = part,
                     .last = part + 1 == parts});
  }
  return split;
}

MicroBatch WithoutPadding(const MicroBatch& part) {
  MicroBatch cut = part;
  if (part.own == 0 || part.own == part.batch.inputs.size(0)) return cut;
  cut.batch = BatchRows(part.batch, 0, part.own);
  return cut;
}

absl::StatusOr<std::unique_ptr<Model>> MakeChosenModel(const Options& options,
                                                       const at::Device& device) {
  if (options.fp16 && !device.is_cuda()) {
    return absl::InvalidArgumentError(
        "--fp16 computes on a GPU, and there is none: use --bf16, or neither");
  }
  absl::StatusOr<std::unique_ptr<Model>> model =
      MakeModel(options.qat.on ? QatRecipe(options.model) : options.model, options.shape,
                {.seed = options.seed,
                 .channels_last = options.channels_last,
                 .recompute = options.recompute});
  if (model.ok()) (*model)->MoveTo(device, options.dtype);
  return model;
}

}  // namespace muster::trainer
