// Saves checkpoints of a training under way.
#pragma once

#include <chrono>
#include <functional>

#include "absl/status/status.h"

#include "trainer/app/training/session.h"

namespace muster::trainer {

// Every rank must call these at the same step, and all return the same error but for that of rank
// 0's log files. They throw what c10d throws.

// Saves a checkpoint of session.state in the directory of each owner, unless there are none or they
// have it. Waits, as FinishSaving does, for the one before, and for the copying; the writing goes
// on beside the training, and its failure is returned by the next call of either function.
absl::Status SaveCheckpoint(Session& session);

// Once nothing is being written on any rank: begins to write the index of the shards, if there are
// some without one (session.shards_open).
absl::Status IndexShards(Session& session);

// Waits until nothing is being written on any rank, and shards have their index.
absl::Status FinishSaving(Session& session);

// Waits until something is done on every rank; beats go on meanwhile, and ranks stay in touch, so
// that it may take longer than --timeout. `done` waits for this rank's part, at most as long as it
// is told, and says whether it is done; it is called again until it is.
void AwaitAll(Session& session, const std::function<bool(std::chrono::milliseconds)>& done);

}  // namespace muster::trainer
