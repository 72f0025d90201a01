#include "trainer/app/training/saving.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/optim/schedule.h"
#include "trainer/parallel/broadcast_bucket.h"

namespace muster::trainer {
namespace {

// Gives all ranks rank 0's buffers if any other rank saves them: all have the same parameters, but
// each has its own statistics of batch normalization. A run that resumes has rank 0's, too.
void ShareBuffers(Session& s) {
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& buffer : s.model->Buffers()) buffers.push_back(buffer.tensor);
  if (buffers.empty() || s.owners.back() == 0) return;
  const at::NoGradGuard no_grad;
  c10d::broadcast_coalesced(s.group.group(), buffers, kBroadcastBucketBytes, /*rank=*/0);
}

}  // namespace

absl::Status SaveCheckpoint(Session& s) {
  if (s.owners.empty() || s.saved_step == s.state.step) return absl::OkStatus();
  const absl::Status before = FinishSaving(s);
  if (!before.ok()) return before;
  ShareBuffers(s);
  s.saved_step = s.state.step;
  s.state.gradient_order = s.strategy->GradientOrder();
  // Logs first: they may say more than the checkpoint knows, and never less.
  const absl::Status logged = s.leads() ? s.reporter->Flush() : absl::OkStatus();
  if (!logged.ok() || s.writer == nullptr) return logged;
  const double lr = LearningRateAt(s.options.schedule, s.state.step);
  const auto best =
      s.options.checkpoint.keep_best ? std::optional(s.state.best.step) : std::nullopt;
  s.writer->Start(s.state.step,
                  TakeSnapshot({*s.model, *s.optimizer, s.state, s.ema.get()}, s.options, lr),
                  best);
  s.beats.Send(s.state.step);
  return absl::OkStatus();
}

absl::Status FinishSaving(Session& s) {
  if (s.owners.empty()) return absl::OkStatus();
  AwaitAll(s, [&s](std::chrono::milliseconds most) {
    return s.writer == nullptr || s.writer->WaitFor(most);
  });
  return FirstFailure(s.writer ? s.writer->status() : absl::OkStatus(), s.group);
}

void AwaitAll(Session& s, const std::function<bool(std::chrono::milliseconds)>& done) {
  constexpr std::chrono::milliseconds kBetweenBeats(250);
  while (s.group.Sum({done(kBetweenBeats) ? 0.0 : 1.0})[0] > 0) s.beats.Send(s.state.step);
}

}  // namespace muster::trainer
