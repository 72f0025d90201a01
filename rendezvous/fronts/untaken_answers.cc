#include "rendezvous/fronts/untaken_answers.h"

#include <utility>

namespace muster::rendezvous {

UntakenAnswers::Id UntakenAnswers::Add(const Peer& peer, std::size_t bytes) {
  const Id id = next_++;
  answers_.emplace(id, Answer{.peer = peer, .bytes = bytes});
  bytes_ += bytes;
  // Those of connections that were ended count until gRPC has let go of them, which it soon does.
  std::size_t left = bytes_;
  for (auto& [oldest, answer] : answers_) {
    if (left <= most_bytes_ || oldest == id) break;
    left -= answer.bytes;
    if (std::exchange(answer.dropped, true)) continue;
    drop_(answer.peer);
  }
  return id;
}

void UntakenAnswers::Taken(Id id) {
  const auto answer = answers_.find(id);
  if (answer == answers_.end()) return;
  bytes_ -= answer->second.bytes;
  answers_.erase(answer);
}

}  // namespace muster::rendezvous
