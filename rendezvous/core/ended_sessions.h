// Sessions that have ended, for as long as something said in them may still arrive.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// An agent that heard no answer comes back over another connection and joins again with the same
// session. What it sent over the earlier connection may arrive even later, when the attendance that
// it began has come and gone. It must not be taken for the beginning of another: a late Join would
// put an agent into its job although it has been told that it has no place there. When it then
// rejoined, it would be turned away, because its node is there already.
//
// Not thread-safe.
class EndedSessions {
 public:
  // The attendance that ended at `now` was last heard over `agent` (0: its connection had ended),
  // the session's connection with this number, and over none with a greater one.
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
