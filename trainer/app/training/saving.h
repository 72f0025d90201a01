// Saves checkpoints of a training under way.
#pragma once

#include "absl/status/status.h"

#include "trainer/app/training/session.h"

namespace muster::trainer {

// Saves a checkpoint of session.state in the directory of each owner, unless there are none or they
// have it. Every rank must call it at the same step, and all return the same error. Throws what
// c10d throws.
absl::Status SaveCheckpoint(Session& session);

}  // namespace muster::trainer
