#include "rendezvous/fronts/untaken_answers.h"

#include <utility>

namespace muster::rendezvous {

UntakenAnswers::Id UntakenAnswers::Add(const Peer& peer, std::size_t bytes) {
  const Id id = next_++;
  answers_.emplace(id, Answer{.peer = peer, .bytes = bytes, .since = Clock::now()});
  bytes_ += bytes;
  // Those of connections that were ended count until gRPC has let go of them, which it soon does.
  std::size_t left = bytes_;
  for (auto& [oldest, answer] : answers_) {
    if (left <= limits_.bytes || oldest == id) break;
    left -= answer.bytes;
    Drop(answer, dropped_for_bytes_);
  }
  AwaitOverdue();
  return id;
}

void UntakenAnswers::Taken(Id id) {
  const auto answer = answers_.find(id);
  if (answer == answers_.end()) return;
  bytes_ -= answer->second.bytes;
  answers_.erase(answer);
}

void UntakenAnswers::Drop(Answer& answer, std::uint64_t& count) {
  if (std::exchange(answer.dropped, true)) return;
  ++count;
  drop_(answer.peer);
}

void UntakenAnswers::AwaitOverdue() {
  if (awaits_overdue_ || answers_.size() <= limits_.answers) return;
  awaits_overdue_ = true;
  overdue_.expires_after(limits_.patience);
  overdue_.async_wait(lifetime_.Guard([this](const boost::system::error_code&) {
    awaits_overdue_ = false;
    DropOverdue();
    AwaitOverdue();
  }));
}

void UntakenAnswers::DropOverdue() {
  const Clock::time_point before = Clock::now() - limits_.patience;
  std::size_t left = answers_.size();
  for (auto& [id, answer] : answers_) {
    if (left <= limits_.answers || answer.since > before) break;
    --left;
    Drop(answer, dropped_for_number_);
  }
}

}  // namespace muster::rendezvous
