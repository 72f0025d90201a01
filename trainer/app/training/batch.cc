#include "trainer/app/training/batch.h"

namespace muster::trainer {

absl::Status BeginBatch(const BatchRequest& request, TrainState* state) {
  absl::Status status = CheckBatchSize(request.batch_size, request.parts);
  if (!status.ok()) return status;
  state->batch_size = request.batch_size;
  state->parts = request.parts;
  state->asked_batch_size = request.batch_size;
  state->asked_share = request.batch_size / request.parts;
  return absl::OkStatus();
}

absl::Status ResumeBatch(const BatchRequest& request, TrainState* state) {
  if (state->asked_share == 0) {
    // The checkpoint is of an older version: assume that what was in use had been asked for.
    state->asked_batch_size = request.batch_size;
    state->asked_share = (state->batch_size + state->parts - 1) / state->parts;
  }
  if (request.batch_size != state->asked_batch_size) return BeginBatch(request, state);
  if (request.parts != state->parts && request.on_resize == OnResize::kScaleBatch) {
    state->batch_size = state->asked_share * request.parts;
  }
  state->parts = request.parts;
  return absl::OkStatus();
}

}  // namespace muster::trainer
