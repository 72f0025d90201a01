#include "trainer/app/strategies/micro_batch.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "trainer/models/autocast.h"

namespace muster::trainer {
namespace {

// The first `count` of the rows of `tensor`, or itself when it has no more: each operation that is
// left out is one less on the way back, too.
at::Tensor First(const at::Tensor& tensor, std::int64_t count) {
  return count == tensor.size(0) ? tensor : tensor.narrow(0, 0, count);
}

}  // namespace

std::vector<MicroBatch> SplitUp(const LoadedBatch& batch, std::int64_t parts) {
  const auto samples = static_cast<std::int64_t>(batch.plan.indices.size());
  parts = std::min(parts, samples);
  std::vector<MicroBatch> split;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = samples * part / parts;
    const std::int64_t count = samples * (part + 1) / parts - begin;
    split.push_back({.batch = {batch.data.inputs.narrow(0, begin, count),
                               batch.data.targets.narrow(0, begin, count)},
                     .own = std::clamp<std::int64_t>(batch.plan.own - begin, 0, count),
                     .index = part,
                     .last = part + 1 == parts});
  }
  return split;
}

RandomPlace PlaceOf(const StrategyParts& parts, std::int64_t step, const MicroBatch& part) {
  return {.seed = parts.options.seed,
          .step = step,
          .micro_batch = part.index,
          .data_rank = parts.group.rank()};
}

double PassThrough(const StrategyParts& parts, const MicroBatch& part, double divisor,
                   const std::function<at::Tensor(const at::Tensor& inputs)>& forward) {
  parts.phases.Enter(Phase::kForward);
  const at::Device& device = parts.group.device();
  const Batch moved = MovedTo(part.batch, device, parts.options.dtype);
  at::Tensor loss;
  {
    const Bf16Autocast autocast(parts.options.bf16, device.is_cuda());
    const at::Tensor scores = forward(moved.inputs);
    loss =
        parts.options.model.objective.loss(First(scores, part.own), First(moved.targets, part.own));
  }
  parts.phases.Enter(Phase::kBackward);
  loss.div(divisor).backward();
  return loss.item<double>();
}

}  // namespace muster::trainer
