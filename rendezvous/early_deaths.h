// Agents that are said to be dead before it is known who they were.
#pragma once

#include <cstddef>
#include <vector>

#include "rendezvous/core/types.h"
#include "rendezvous/fronts/driver.h"

namespace muster::rendezvous {

// A guard says only once that its agent is dead. While what is remembered of tenants is being
// opened, or where that has failed and is tried again, the agent may be of one of those that are
// still to come. Lives on the loop's thread.
class EarlyDeaths {
 public:
  // Any stranger may say so, and a tenant may never come: what comes after so many waits for the
  // end of its lease.
  static constexpr std::size_t kMost = 10'000;

  void Add(const SessionToken& session) {
    if (sessions_.size() < kMost) sessions_.push_back(session);
  }
  // One more tenant is there.
  void Tell(Driver& driver) const {
    for (const SessionToken& session : sessions_) driver.AgentDied(session);
  }
  // All of them are.
  void Clear() { sessions_.clear(); }

 private:
  std::vector<SessionToken> sessions_;
};

}  // namespace muster::rendezvous
