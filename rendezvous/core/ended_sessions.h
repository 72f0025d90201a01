// Sessions that have ended, for as long as something may arrive that was said in them.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// An agent that heard no answer comes back over another connection and joins again by the same
// session. What it had sent over the connection before may arrive later still, when the attendance
// that it began has come and gone: it must not be taken for the beginning of another. A late Join
// would put an agent into its job that has been told that it has no place there, and that is turned
// away when it joins anew, because its node is there already.
//
// Not thread-safe.
class EndedSessions {
 public:
  // The attendance that has ended at `now` was heard over `agent` (0: its connection had ended),
  // the one of the session's connections with this number, and over none with a greater one.
  void Add(const SessionToken& session, AgentId agent, std::uint64_t connection, TimePoint now);

  // A Join of this session, over this connection, was said before the session's end.
  bool SaidBefore(const SessionToken& session, AgentId agent, std::uint64_t connection) const;

 private:
  struct End {
    AgentId agent = 0;
    std::uint64_t connection = 0;
    TimePoint time{};
  };

  std::unordered_map<SessionToken, End> ends_;
  std::deque<std::pair<TimePoint, SessionToken>> in_order_;
};

}  // namespace muster::rendezvous
