// The learning rate of each step.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace muster::trainer {

enum class ScheduleKind {
  kConstant,
  kStep,    // torch.optim.lr_scheduler.StepLR: multiplied by `gamma` every `step_size` steps
  kCosine,  // CosineAnnealingLR: half a cosine from learning_rate to `minimum` at the last step
};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 0.02;  // reached at the end of the warm-up

  // Length of the warm-up in steps; 0: none. LinearLR(start_factor=warmup_start,
  // total_iters=warmup_steps): rises linearly from learning_rate * warmup_start to learning_rate.
  std::int64_t warmup_steps = 0;
  double warmup_start = 0.01;  // in (0, 1]

  // For kStep, counted from the end of the warm-up.
  std::int64_t step_size = 1;
  double gamma = 0.1;

  // For kCosine: the number of steps including the warm-up (T_max is total_steps - warmup_steps).
  // After that the rate stays at `minimum`, whereas CosineAnnealingLR would rise again.
  std::int64_t total_steps = 1;
  double minimum = 0;
};

// The learning rate of step `step`, counted from 0: what
//   SequentialLR([LinearLR(...), StepLR or CosineAnnealingLR], milestones=[warmup_steps])
// gives with scheduler.step() after each step. Depends only on its arguments, so resuming needs no
// state but the step.
double LearningRateAt(const ScheduleOptions& options, std::int64_t step);

// kInvalidArgument and one sentence when an option is out of range.
absl::Status CheckSchedule(const ScheduleOptions& options);

}  // namespace muster::trainer
