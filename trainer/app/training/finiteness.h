// What happens when the numbers of a training are no longer finite.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/loop.h"

namespace muster::trainer {

// What this rank can say about the loss of its own part of a step, `loss`, with that step's
// StepResult::not_finite. Empty when the loss is finite; otherwise a word for NonFiniteLoss.
std::string WordOnLoss(double loss, const std::string& not_finite);

// Why the loss of step `step`, over all ranks, is not finite. It is kInvalidArgument: resuming is
// exact, so a restart would end at the same step, and the user has to change something. Every rank
// calls it, with its own word on that step. Throws what c10d throws.
absl::Status NonFiniteLoss(const Loop& loop, std::int64_t step, const std::string& mine);

// Whether the model may be saved as it is after loop.state.step, that is, whether it is finite on
// all ranks. If not, returns kInvalidArgument, or with --on-nonfinite ignore tells the user and
// returns false. Every rank calls it and gets the same answer. Throws what c10d throws.
absl::StatusOr<bool> FitToKeep(const Loop& loop);

}  // namespace muster::trainer
