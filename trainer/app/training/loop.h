// State shared by the epochs and the end of a training.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/reports.h"
#include "trainer/app/training/saving.h"
#include "trainer/app/training/start.h"
#include "trainer/app/training/train_state.h"
#include "trainer/optim/optimizer.h"
#include "trainer/runtime/trace_recorder.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {

// The phases of each step and, for --trace, the operators of the first steps.

// One thread; records the operators of all threads. At most one may record at a time.
class StepTrace {
 public:
  StepTrace();

  // Records until `steps` steps are done, or Write() is called.
  void Record(std::int64_t steps);
  void OnStep();

  // For --profile; strategies mark their phases here.
  PhaseTracker& phases() { return phases_; }

  // Ends the recording, and writes this rank's part of the trace; rank 0 merges the parts it can
  // see, and tells the user about the others. Every rank calls it. kUnavailable if a file cannot be
  // written. Throws what c10d throws.
  absl::Status Write(const Job& job);

 private:
  void End();

  TraceBuffer trace_;
  std::unique_ptr<TraceRecorder> recorder_;  // while steps are traced
  PhaseTracker phases_;
  std::int64_t steps_left_ = 0;
};

// For the summary of this run.
struct RunTotals {
  double seconds = 0;              // of training
  std::int64_t samples = 0;        // over all ranks
  std::int64_t skipped_steps = 0;  // with a gradient that was not finite
  // For the run's second step, which is typical: its samples, over all ranks, and this rank's
  // floating point operations. 0: there was none.
  std::int64_t counted_samples = 0;
  std::int64_t counted_flops = 0;
};

// A training in progress: its parts and its state. One thread.
struct Loop {
  const Job& job;
  Strategy& strategy;
  Saver& saver;
  Reporter* const reporter;  // on rank 0
  StepTrace& trace;
  const std::int64_t resumed_step;
  const ScheduleOptions schedule;  // with total_steps

  TrainState state;
  RunTotals totals{};

  // The learning rate of the next step.
  double learning_rate() const { return LearningRateAt(schedule, state.step); }
  // Whether --max-steps has been reached.
  bool limit_reached() const {
    return job.options.max_steps > 0 && state.step >= job.options.max_steps;
  }
  // Whether --early-stop ends the training: no test has improved for long enough.
  bool stalled() const {
    return job.options.early_stop > 0 && state.best.tests_since >= job.options.early_stop;
  }
};

// Saves a checkpoint (Saver::Save), logs first: they may be ahead of the checkpoint, but never
// behind. Every rank calls it; all return the same error, except for rank 0's log files.
absl::Status SaveCheckpoint(Loop& loop);

// The total number of steps at the end of a training that starts at `state`.
std::int64_t TotalSteps(const Options& options, const TrainState& state);

// What happens when the numbers of a training are no longer finite.

// This rank's report about the loss of its part of a step, `loss`, and that step's
// StepResult::not_finite. Empty if the loss is finite; otherwise input for NonFiniteLoss.
std::string WordOnLoss(double loss, const std::string& not_finite);

// Why the loss of step `step`, over all ranks, is not finite. It is kInvalidArgument: resuming is
// exact, so a restart would end at the same step, and the user has to change something. Every rank
// calls it, with its own report about that step. Throws what c10d throws.
absl::Status NonFiniteLoss(const Loop& loop, std::int64_t step, const std::string& mine);

// Whether the model may be saved after loop.state.step: it must be finite on all ranks. If not,
// returns kInvalidArgument, or with --on-nonfinite ignore tells the user and returns false. Every
// rank calls it and gets the same result. Throws what c10d throws.
absl::StatusOr<bool> FitToKeep(const Loop& loop);

}  // namespace muster::trainer
