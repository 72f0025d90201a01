// Runs one rank's part of the training, from the first step to the last file.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/app/training/loop.h"
#include "trainer/app/training/reports.h"

namespace muster::trainer {

// Trains with the other ranks of loop.job.group(), evaluates, and writes the requested files.
// Returns when every rank is done, or when one was told to stop; then Summary::stopped is set, and
// a checkpoint is saved if there is a directory for it. The same options and seed give the same
// losses for any number of ranks, up to rounding: every step uses the same samples and the gradient
// of their mean loss. Call it once.
//
// kUnavailable if a peer is lost (with the step) or a file cannot be written, kInvalidArgument if
// the user has to change something; after an error the group must not be used. Throws nothing.
absl::StatusOr<Summary> Train(Loop& loop);

// Trains one epoch, or the rest of one.

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
