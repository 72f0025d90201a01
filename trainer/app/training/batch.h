// The number of samples in a step.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

#include "trainer/app/options/options.h"
#include "trainer/app/training/train_state.h"

namespace muster::trainer {

// What a run asks for when it starts.
struct BatchRequest {
  std::int64_t batch_size = 0;  // --batch-size
  int parts = 1;                // in which ranks take it: DataPlace::parts
  OnResize on_resize = OnResize::kKeepBatch;
};

// Sets the batch of a run that starts from the beginning; all ranks have the same share of it.
// kInvalidArgument, and `state` unchanged, if it cannot be shared evenly.
absl::Status BeginBatch(const BatchRequest& request, TrainState* state);

// Sets the batch of a run that resumes; `state` is that of the checkpoint. If --batch-size has
// changed, the same as BeginBatch. Otherwise, if the number of ranks has changed, either keeps the
// batch, of which ranks may then have uneven shares, or keeps the share that each rank had when
// --batch-size was set. If neither has changed, the batch stays the same. Errors as BeginBatch.
absl::Status ResumeBatch(const BatchRequest& request, TrainState* state);

}  // namespace muster::trainer
