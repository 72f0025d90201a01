// The choice of an optimizer and its settings.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

#include "trainer/models/recipe.h"

namespace muster::trainer {

enum class OptimizerKind { kSgd, kAdamW };

// Implementations of the same update.
enum class OptimizerPath {
  // The operations of torch.optim in the same order, so the result matches Python bit for bit.
  kReference,
  // The same operations, each on all parameters at once, as with foreach=True in Python: on a GPU
  // about ten launches per step instead of ten per parameter.
  kForeach,
  // The fastest: on the CPU, for float32 and float64, one pass over each parameter instead of one
  // per operation, which is up to twice as fast and rounds differently; on a GPU kForeach. Others
  // use the reference path.
  kOnePass,
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  OptimizerPath path = OptimizerPath::kOnePass;

  // SGD adds weight_decay * parameter to the gradient; AdamW shrinks the parameter separately.
  // Python's defaults are 0 for SGD and 0.01 for AdamW.
  double weight_decay = 0;
  // Whether parameters with fewer than two dimensions (biases and the weights of normalization
  // layers) decay too. If not, they form a second group without weight decay.
  bool decay_vectors = true;

  // For SGD.
  double momentum = 0.9;
  bool nesterov = false;  // requires momentum

  // Of AdamW.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // For AdamW's reference path, because versions of torch round differently: whether the mean of
  // the gradients is computed with lerp_ instead of mul_ and add_, and whether the square root of
  // the second bias correction is computed as a power of 0.5 instead of with sqrt. For parity with
  // Python, take both from trainer/compat/torch_version.h.
  bool interpolate_mean = false;
  bool root_is_power = false;

  // A recipe's own rules: its update rule replaces `kind`.
  OwnUpdates own = {};
};

// The default learning rate. For AdamW, whose steps do not shrink with the gradients, it is
// Python's.
inline double UsualLearningRate(const OptimizerOptions& options) {
  if (options.own.rule) return options.own.rule->lr;
  return options.kind == OptimizerKind::kAdamW ? 0.001 : 0.02;
}

// The learning rate of each step.

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

  // A recipe's own schedule, instead of `kind`: the factor for the learning rate in step `step` of
  // `total_steps` (OwnUpdates::schedule). Null: none.
  std::function<double(std::int64_t step, std::int64_t steps)> own = nullptr;
};

// The learning rate of step `step`, counted from 0: what
//   SequentialLR([LinearLR(...), StepLR or CosineAnnealingLR], milestones=[warmup_steps])
// gives with scheduler.step() after each step. Depends only on its arguments, so resuming needs no
// state but the step.
double LearningRateAt(const ScheduleOptions& options, std::int64_t step);

// kInvalidArgument and one sentence when an option is out of range.
absl::Status CheckSchedule(const ScheduleOptions& options);

}  // namespace muster::trainer
