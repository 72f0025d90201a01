#include "launcher/agent/kept_logs.h"

#include <algorithm>

namespace muster::launcher {

void KeptLogs::BeginRound(rendezvous::RoundId round, std::vector<worker::WorkerSpec>& specs) {
  Round& begun = rounds_.emplace_back(Round{.id = round, .ranks = {}});
  for (worker::WorkerSpec& spec : specs) {
    spec.stdout_spec.log = std::make_shared<worker::StreamLog>(spec.stdout_spec.file);
    spec.stderr_spec.log = std::make_shared<worker::StreamLog>(spec.stderr_spec.file);
    begun.ranks.push_back(
        {.rank = spec.rank, .out = spec.stdout_spec.log, .err = spec.stderr_spec.log});
  }
  if (rounds_.size() > kRounds) rounds_.pop_front();
  if (rounds_.size() <= kInMemory) return;
  for (const Rank& rank : rounds_[rounds_.size() - kInMemory - 1].ranks) {
    rank.out->Forget();
    rank.err->Forget();
  }
}

void KeptLogs::EndRound() {
  if (rounds_.empty()) return;
  for (const Rank& rank : rounds_.back().ranks) {
    rank.out->End();
    rank.err->End();
  }
}

const std::vector<KeptLogs::Rank>* KeptLogs::Find(rendezvous::RoundId round) const {
  for (const Round& kept : rounds_) {
    if (kept.id == round) return &kept.ranks;
  }
  return nullptr;
}

bool KeptLogs::IsToCome(rendezvous::RoundId round) const {
  return std::none_of(rounds_.begin(), rounds_.end(), [&round](const Round& kept) {
    return kept.id.incarnation == round.incarnation && kept.id.number >= round.number;
  });
}

}  // namespace muster::launcher
