#include "trainer/optim/optimizer_options.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

namespace muster::trainer {

double LearningRateAt(const ScheduleOptions& options, std::int64_t step) {
  const double base = options.learning_rate;
  if (step < options.warmup_steps) {
    const double share = static_cast<double>(step) / static_cast<double>(options.warmup_steps);
    return base * (options.warmup_start + (1 - options.warmup_start) * share);
  }
  if (options.own) return base * options.own(step, options.total_steps);
  const std::int64_t since = step - options.warmup_steps;
  switch (options.kind) {
    case ScheduleKind::kConstant:
      return base;
    case ScheduleKind::kStep:
      return base * std::pow(options.gamma, static_cast<double>(since / options.step_size));
    case ScheduleKind::kCosine: {
      const std::int64_t all = options.total_steps - options.warmup_steps;
      if (since >= all) return options.minimum;
      const double angle = std::numbers::pi * static_cast<double>(since) / static_cast<double>(all);
      return options.minimum + (base - options.minimum) * (1 + std::cos(angle)) / 2;
    }
  }
  return base;
}

absl::Status CheckSchedule(const ScheduleOptions& options) {
  const auto bad = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("schedule the learning rate: ", why...));
  };
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    return bad("it is ", options.learning_rate, ", and must be above 0; give another --lr");
  }
  if (options.warmup_steps < 0) return bad("a warm-up of ", options.warmup_steps, " steps");
  if (!(options.warmup_start > 0 && options.warmup_start <= 1)) {
    return bad("a warm-up from ", options.warmup_start,
               " times the learning rate, which must be above 0 and at most 1");
  }
  if (options.own) return absl::OkStatus();
  if (options.kind == ScheduleKind::kStep) {
    if (options.step_size < 1) {
      return bad("it cannot fall every ", options.step_size, " steps");
    }
    if (!(options.gamma > 0 && options.gamma <= 1)) {
      return bad("a factor of ", options.gamma, ", which must be above 0 and at most 1");
    }
  }
  if (options.kind == ScheduleKind::kCosine) {
    if (options.total_steps <= options.warmup_steps) {
      return bad("a cosine over ", options.total_steps, " steps, of which ", options.warmup_steps,
                 " are warm-up");
    }
    if (!(options.minimum >= 0 && options.minimum <= options.learning_rate)) {
      return bad("a minimum of ", options.minimum, ", which must be from 0 to the learning rate");
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::trainer
