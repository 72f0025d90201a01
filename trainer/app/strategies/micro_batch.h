// A rank's share of a batch, in the parts that pass through the model one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/app/strategies/strategy.h"
#include "trainer/data/loading/batch_loader.h"

namespace muster::trainer {

struct MicroBatch {
  Batch batch;             // shares memory with the whole
  std::int64_t own = 0;    // how many of its samples count: the first ones
  std::int64_t index = 0;  // in its step
  bool last = false;       // the last of its step
};

// Splits `batch` into `parts` of about the same size, or one for each sample if there are fewer.
std::vector<MicroBatch> SplitUp(const LoadedBatch& batch, std::int64_t parts);

// Where the numbers for `part` of a step are drawn, `step` being the number of steps before.
RandomPlace PlaceOf(const StrategyParts& parts, std::int64_t step, const MicroBatch& part);

// Runs `part` forward, by `forward`, and backward, with its loss divided by `divisor`, and so adds
// to the gradients. Returns the sum of the losses of its own samples. Throws what LibTorch and c10d
// throw.
double PassThrough(const StrategyParts& parts, const MicroBatch& part, double divisor,
                   const std::function<at::Tensor(const at::Tensor& inputs)>& forward);

}  // namespace muster::trainer
