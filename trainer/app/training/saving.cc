#include "trainer/app/training/saving.h"

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/io/rng_state.h"
#include "trainer/optim/schedule.h"
#include "trainer/parallel/broadcast_bucket.h"

namespace muster::trainer {
namespace {

// Gives all ranks rank 0's buffers if any other rank saves them: parameters are the same on all,
// and what batch normalization has counted is not. Whoever resumes gets rank 0's, too.
void ShareBuffers(Session& s) {
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& buffer : s.model->Buffers()) buffers.push_back(buffer.tensor);
  if (buffers.empty() || s.owners.ranks.back() == 0) return;
  const at::NoGradGuard no_grad;
  c10d::broadcast_coalesced(s.group.group(), buffers, kBroadcastBucketBytes, /*rank=*/0);
}

}  // namespace

absl::Status SaveCheckpoint(Session& s) {
  if (s.owners.ranks.empty() || s.saved_step == s.state.step) return absl::OkStatus();
  const at::Tensor rng = CpuRngState();
  // In base 64: what is gathered is text.
  const std::string mine = absl::Base64Escape(absl::string_view(
      static_cast<const char*>(rng.data_ptr()), static_cast<std::size_t>(rng.numel())));
  std::vector<std::string> all = s.group.Gather(mine, mine.size());
  for (std::string& state : all) {
    std::string bytes;
    if (!absl::Base64Unescape(state, &bytes)) {
      return absl::InternalError("checkpoint: a rank's random numbers are not base 64");
    }
    state = std::move(bytes);
  }
  ShareBuffers(s);
  s.saved_step = s.state.step;
  absl::Status status;
  // Logs first: they may say more than the checkpoint knows, and never less.
  if (s.leads()) status = s.reporter->Flush();
  if (status.ok() && s.owners.directory) {
    const double lr = LearningRateAt(s.options.schedule, s.state.step);
    const Value snapshot = TakeSnapshot({*s.model, *s.optimizer, s.state}, s.options, lr, all);
    status = s.owners.directory->Save(s.state.step, snapshot, s.job).status();
  }
  s.beats.Send(s.state.step);
  return FirstFailure(status, s.group);
}

}  // namespace muster::trainer
