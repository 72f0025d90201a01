// The progress of a training.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/io/state_dict.h"

namespace muster::trainer {

// The best result of the tests so far.

struct Best {
  double loss = std::numeric_limits<double>::infinity();  // in nats; infinite before the first test
  std::int64_t step = 0;                                  // the step after which it was measured
  std::int64_t tests_since = 0;                           // in a row, without improvement

  // Records the test loss after step `tested_step`. NaN is worse than any other loss.
  void Add(std::int64_t tested_step, double tested_loss) {
    if (tested_loss < loss) {
      *this = {tested_loss, tested_step, 0};
    } else {
      ++tests_since;
    }
  }
};

// A sum of losses over predictions.

// For one rank or all, for one step or many.
struct LossSum {
  double loss = 0;         // nats
  double predictions = 0;  // images, or bytes of text

  // NaN if there are no predictions.
  double mean() const { return loss / predictions; }
  LossSum& operator+=(const LossSum& other) {
    loss += other.loss;
    predictions += other.predictions;
    return *this;
  }
};

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
  // As of when the state was saved.
  std::int64_t batch_size = 0;
  int parts = 1;  // into which a batch was divided: as many as ranks, if each has the whole model
  // The --batch-size of the run, and the largest share of it that a rank had when it was set. They
  // stay the same when the number of ranks changes, which --on-resize relies on. 0 if the
  // checkpoint is of a version that did not save them.
  std::int64_t asked_batch_size = 0;
  std::int64_t asked_share = 0;

  Best best;  // of the tests so far
};

// Converts the state to an entry of a checkpoint, and back. kInvalidArgument and one sentence when
// a field is missing, has the wrong type or an impossible value.
Value TrainStateValue(const TrainState& state);
absl::StatusOr<TrainState> ReadTrainState(const Value& value);

// The number of samples in a step.

// A run's request at its start.
struct BatchRequest {
  std::int64_t batch_size = 0;  // --batch-size
  int parts = 1;                // into which it is divided: DataPlace::parts
  OnResize on_resize = OnResize::kKeepBatch;
};

// Sets the batch of a run that starts from the beginning. The shares of ranks differ by at most one
// sample. kInvalidArgument, and `state` unchanged, if there is less than one per rank.
absl::Status BeginBatch(const BatchRequest& request, TrainState* state);

// Sets the batch of a run that resumes; `state` is that of the checkpoint. If --batch-size has
// changed, the same as BeginBatch. Otherwise, if the number of ranks has changed, either keeps the
// batch, or keeps the largest share that a rank had when --batch-size was set. If neither
// has changed, the batch stays the same. Errors as BeginBatch.
absl::Status ResumeBatch(const BatchRequest& request, TrainState* state);

}  // namespace muster::trainer
