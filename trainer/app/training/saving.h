// Saves checkpoints of a training under way.
#pragma once

#include "absl/status/status.h"

#include "trainer/app/training/session.h"

namespace muster::trainer {

// Saves a checkpoint of session.state, unless there is no checkpoint directory or this step was
// just saved. Every rank must call it at the same step. Throws what c10d throws.
absl::Status SaveCheckpoint(Session& session);

}  // namespace muster::trainer
