// A rank's share of a batch, in the parts that pass through the model one after another.
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace muster::trainer
