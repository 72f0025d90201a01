#include "launcher/agent/fitness.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::launcher {

std::optional<AskForPlace> Fitness::BeforeJoin(rendezvous::RoundId after) {
  if (check_ == HealthCheck::kNone || !unfit_.empty()) return AskForPlace{after, unfit_};
  checking_after_ = after;
  return std::nullopt;
}

std::optional<AskForPlace> Fitness::OnHealth(const absl::Status& status) {
  const auto after = std::exchange(checking_after_, std::nullopt);
  if (!after.has_value()) return std::nullopt;
  return AskForPlace{*after, std::string(status.message())};
}

bool Fitness::Drop() {
  return std::exchange(checking_after_, std::nullopt).has_value();
}

void Fitness::OnWorkersGone(const worker::GroupResult& result) {
  for (const worker::WorkerExit& exit : result.exits) {
    if (exit.status) continue;
    unfit_ = absl::StrCat("rank ", exit.rank, " (pid ", exit.pid, ") cannot be killed: it ",
                          exit.stuck.empty() ? "does not end" : exit.stuck);
  }
}

}  // namespace muster::launcher
