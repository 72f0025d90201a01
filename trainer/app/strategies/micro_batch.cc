#include "trainer/app/strategies/micro_batch.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

namespace muster::trainer {

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

}  // namespace muster::trainer
