// What happens when the numbers of a training are no longer finite.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/training/session.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

// For --on-nonfinite skip: a step whose gradient is not finite must leave no trace. One thread.
//
// DDP leaves the same gradients on every rank, so all ranks decide alike without asking each other.
// With averaged parameters each rank decides about its own step.
class StepGuard {
 public:
  // `session` must have its model, and must outlive this object.
  explicit StepGuard(const Session& session);

  // Call this before the forward pass, which also changes buffers.
  void BeforeStep();

  // Call this after the backward pass. Returns whether the optimizer may take its step; if not, the
  // buffers are set back to what they were. With --clip it only looks at `gradient_norm`, which is
  // what clipping returned; otherwise it reads every gradient.
  bool Allows(double gradient_norm);

 private:
  const Session& s_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> copies_;
};

// What this rank can say about the loss of its own part of a step, before the optimizer's step.
// Empty when the loss is finite; otherwise a word for NonFiniteLoss.
std::string WordOnLoss(double loss, const std::vector<NamedTensor>& parameters);

// Why the loss of step `step`, over all ranks, is not finite. It is kInvalidArgument: resuming is
// exact, so a restart would end at the same step, and the user has to change something. Every rank
// calls it, with its own word on that step. Throws what c10d throws.
absl::Status NonFiniteLoss(const Session& session, std::int64_t step, const std::string& mine);

// Whether the model may be saved as it is after session.state.step, that is, whether it is finite
// on all ranks. If not, returns kInvalidArgument, or with --on-nonfinite ignore tells the user and
// returns false. Every rank calls it and gets the same answer. Throws what c10d throws.
absl::StatusOr<bool> FitToKeep(const Session& session);

}  // namespace muster::trainer
