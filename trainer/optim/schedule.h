// The learning rate of each step.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace muster::trainer {

enum class ScheduleKind {
  kConstant,
  kStep,    // torch.optim.lr_scheduler.StepLR: times `gamma` after every `step_size` steps
  kCosine,  // CosineAnnealingLR: half a cosine from learning_rate to `minimum` at the last step
};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 0.02;  // where the warm-up ends and the rest begins

  // Steps of the warm-up, LinearLR(start_factor=warmup_start, total_iters=warmup_steps): from
  // learning_rate * warmup_start in equal parts up to learning_rate; 0: none.
  std::int64_t warmup_steps = 0;
  double warmup_start = 0.01;  // in (0, 1]

  // Of kStep, counted from the end of the warm-up.
  std::int64_t step_size = 1;
  double gamma = 0.1;

  // Of kCosine: all steps, warm-up included (T_max is total_steps - warmup_steps). After them the
  // rate stays at `minimum`; CosineAnnealingLR would go up again.
  std::int64_t total_steps = 1;
  double minimum = 0;
};

// The learning rate of step `step`, the first being 0: what
//   SequentialLR([LinearLR(...), StepLR or CosineAnnealingLR], milestones=[warmup_steps])
// gives with scheduler.step() after each step. A function of its arguments alone, so that resuming
// needs no state but the step.
double LearningRateAt(const ScheduleOptions& options, std::int64_t step);

// kInvalidArgument and one sentence unless LearningRateAt is defined for every step.
absl::Status CheckSchedule(const ScheduleOptions& options);

}  // namespace muster::trainer
