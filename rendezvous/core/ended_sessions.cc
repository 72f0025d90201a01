#include "rendezvous/core/ended_sessions.h"

#include <chrono>

namespace muster::rendezvous {
namespace {

// Linux sends what a process left in a closed socket for some two minutes (tcp_orphan_retries in
// tcp(7)); then the connection is no more.
constexpr Duration kLatest = std::chrono::minutes(5);

}  // namespace

void EndedSessions::Add(const SessionToken& session, AgentId agent, std::uint64_t connection,
                        TimePoint now) {
  while (!in_order_.empty() && in_order_.front().first + kLatest < now) {
    const auto& [time, oldest] = in_order_.front();
    const auto end = ends_.find(oldest);
    // Unless it has ended once more since.
    if (end != ends_.end() && end->second.time == time) ends_.erase(end);
    in_order_.pop_front();
  }
  if (session.empty()) return;
  ends_[session] = {agent, connection, now};
  in_order_.emplace_back(now, session);
}

bool EndedSessions::SaidBefore(const SessionToken& session, AgentId agent,
                               std::uint64_t connection) const {
  const auto end = ends_.find(session);
  if (end == ends_.end()) return false;
  return connection < end->second.connection || agent == end->second.agent;
}

}  // namespace muster::rendezvous
