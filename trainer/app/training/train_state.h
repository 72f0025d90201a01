// How far a training has come.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/training/best.h"
#include "trainer/app/training/loss_sum.h"
#include "trainer/io/value.h"

namespace muster::trainer {

// The state besides the tensors, the same on every rank. Together with the options it determines
// the next samples and their learning rate.
struct TrainState {
  std::int64_t step = 0;      // completed steps, over all epochs
  std::int64_t epoch = 0;     // completed epochs, so the index of the current one
  std::int64_t position = 0;  // samples of this epoch consumed by all ranks together
  LossSum epoch_loss;         // of this epoch so far, over all ranks
  LossSum report_loss;        // since the last report

  // What `position` and the order of the samples refer to.
  std::uint64_t seed = 0;
  std::int64_t dataset_size = 0;
  // Those in use when the state was saved.
  std::int64_t batch_size = 0;
  int parts = 1;  // in which ranks took a batch: as many as ranks, where each has the whole model
  // The --batch-size of the run, and the share of it that each rank had when it was set. They stay
  // the same when the number of ranks changes, which --on-resize relies on. 0 if the checkpoint is
  // of a version that did not save them.
  std::int64_t asked_batch_size = 0;
  std::int64_t asked_share = 0;

  Best best;  // of the tests so far
};

// Converts the state to an entry of a checkpoint, and back. kInvalidArgument and one sentence when
// a field is missing, has the wrong type or an impossible value.
Value TrainStateValue(const TrainState& state);
absl::StatusOr<TrainState> ReadTrainState(const Value& value);

}  // namespace muster::trainer
