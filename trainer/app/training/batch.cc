#include "trainer/app/training/batch.h"

namespace muster::trainer {

absl::Status BeginBatch(const BatchRequest& request, TrainState* state) {
  absl::Status status = CheckBatchSize(request.batch_size, request.world_size);
  if (!status.ok()) return status;
  state->batch_size = request.batch_size;
  state->world_size = request.world_size;
  state->asked_batch_size = request.batch_size;
  state->asked_share = request.batch_size / request.world_size;
  return absl::OkStatus();
}

absl::Status ResumeBatch(const BatchRequest& request, TrainState* state) {
  if (state->asked_share == 0) {
    // The checkpoint is of an older version: assume that what was in use had been asked for.
    state->asked_batch_size = request.batch_size;
    state->asked_share = (state->batch_size + state->world_size - 1) / state->world_size;
  }
  if (request.batch_size != state->asked_batch_size) return BeginBatch(request, state);
  if (request.world_size != state->world_size && request.on_resize == OnResize::kScaleBatch) {
    state->batch_size = state->asked_share * request.world_size;
  }
  state->world_size = request.world_size;
  return absl::OkStatus();
}

}  // namespace muster::trainer
