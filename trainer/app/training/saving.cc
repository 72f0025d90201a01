#include "trainer/app/training/saving.h"

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

#include "trainer/app/training/snapshot.h"
#include "trainer/io/rng_state.h"
#include "trainer/optim/schedule.h"

namespace muster::trainer {

absl::Status SaveCheckpoint(Session& s) {
  if (s.options.checkpoint.directory.empty() || s.saved_step == s.state.step) {
    return absl::OkStatus();
  }
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
  s.saved_step = s.state.step;
  if (!s.leads()) return absl::OkStatus();
  // Logs first: they may say more than the checkpoint knows, and never less.
  absl::Status status = s.reporter->Flush();
  if (!status.ok()) return status;
  const double lr = LearningRateAt(s.options.schedule, s.state.step);
  const Value snapshot = TakeSnapshot({*s.model, *s.optimizer, s.state}, s.options, lr, all);
  const auto saved = s.checkpoints->Save(s.state.step, snapshot);
  s.beats.Send(s.state.step);
  return saved.status();
}

}  // namespace muster::trainer
