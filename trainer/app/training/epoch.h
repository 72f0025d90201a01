// The training of one epoch, or of what is left of it.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/app/training/session.h"

namespace muster::trainer {

enum class EpochEnd {
  kWhole,    // every sample was consumed
  kLimit,    // --max-steps was reached
  kStopped,  // a rank was told to stop
};

// Trains from session.state on, and leaves the state where it ends. Ranks agree on each end. Writes
// and shows what rank 0 writes and shows, and checkpoints within the epoch, on the way.
// kUnavailable when data cannot be had or a file cannot be written. Throws what c10d throws.
absl::StatusOr<EpochEnd> TrainEpoch(Session& session);

// Writes a checkpoint of session.state, unless the newest is one of the same step or none is asked
// for. Every rank calls it, at the same step.
absl::Status SaveCheckpoint(Session& session);

}  // namespace muster::trainer
