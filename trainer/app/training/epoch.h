// Trains one epoch, or the rest of one.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/app/training/loop.h"

namespace muster::trainer {

enum class EpochEnd {
  kWhole,    // all samples were consumed
  kLimit,    // --max-steps was reached
  kStopped,  // a rank was told to stop
};

// Trains from loop.state to the end of the epoch or an earlier stop, and updates the state. All
// ranks return the same EpochEnd. Meanwhile rank 0 reports progress, and checkpoints are saved.
// kUnavailable if data cannot be read or a file cannot be written. Throws what c10d throws.
absl::StatusOr<EpochEnd> TrainEpoch(Loop& loop);

}  // namespace muster::trainer
