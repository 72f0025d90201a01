// Where a training stands.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/training/loss_sum.h"
#include "trainer/io/value.h"

namespace muster::trainer {

// What there is to know besides the tensors, the same on every rank. With the options it decides
// which samples come next and at what learning rate.
struct TrainState {
  std::int64_t step = 0;      // done, over all epochs
  std::int64_t epoch = 0;     // done: the number of the one that is being trained
  std::int64_t position = 0;  // samples of this epoch that all ranks together have consumed
  LossSum epoch_loss;         // of this epoch so far, over all ranks
  LossSum report_loss;        // since the last report

  // What `position` and the order of samples rest on.
  std::uint64_t seed = 0;
  std::int64_t dataset_size = 0;
  // In use when the state was taken: what --on-resize goes by.
  std::int64_t batch_size = 0;
  int world_size = 1;
};

// The state as an entry of a checkpoint, and back. kInvalidArgument, one sentence, when an entry is
// missing, of another type, or cannot be.
Value TrainStateValue(const TrainState& state);
absl::StatusOr<TrainState> ReadTrainState(const Value& value);

}  // namespace muster::trainer
