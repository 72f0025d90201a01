// What the epochs and the end of a training share.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

#include "trainer/app/reports/reporter.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/job.h"
#include "trainer/app/training/saving.h"
#include "trainer/app/training/step_trace.h"
#include "trainer/app/training/train_state.h"
#include "trainer/optim/schedule.h"

namespace muster::trainer {

// Of this run, for its summary.
struct RunTotals {
  double seconds = 0;              // of training
  std::int64_t samples = 0;        // over all ranks
  std::int64_t skipped_steps = 0;  // whose gradient was not finite
  // Of the second step of the run, which is as all others: its samples, over all ranks, and how
  // many floating point operations they took on this rank. 0: there was none.
  std::int64_t counted_samples = 0;
  std::int64_t counted_flops = 0;
};

// A training under way: who does what, and how far it is. One thread.
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
  // Whether --max-steps is set and reached.
  bool limit_reached() const {
    return job.options.max_steps > 0 && state.step >= job.options.max_steps;
  }
  // Whether --early-stop ends the training: no test has been better for long enough.
  bool stalled() const {
    return job.options.early_stop > 0 && state.best.tests_since >= job.options.early_stop;
  }
};

// Saves a checkpoint (Saver::Save), logs first: they may say more than the checkpoint knows, and
// never less. Every rank calls it; all return the same error but for that of rank 0's log files.
absl::Status SaveCheckpoint(Loop& loop);

// How many steps will have been done when a training that starts at `state` ends.
std::int64_t TotalSteps(const Options& options, const TrainState& state);

}  // namespace muster::trainer
