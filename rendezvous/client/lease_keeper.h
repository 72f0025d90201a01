// An agent's side of its lease: until when its workers may run without a word from the rendezvous.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// The rendezvous gives a node's ranks away when it has not heard of it for its lease. By then the
// node's workers must be dead, or two rounds' workers would run at the same time. So the agent
// counts its lease from when it *sent* the last message that was answered, which is earlier than
// when that was heard, and counts only five sixths of it (jepsen.io on etcd 3.4.3: a lease alone is
// no lock).
//
// There is one other word that counts: proof that the daemon is dead and that nobody decides
// anything until it is started again (wire/knock.h). A daemon that remembers its jobs
// (Welcome::durable) then gives every node a whole lease from that start, so the lease runs from
// when the question was sent. It makes no lease whole that had ended by then: that may have ended
// at the daemon, too, while it lived. Silence proves nothing, and neither does a connection that is
// refused: whatever is between the two may refuse it while the daemon lives and gives ranks away.
//
// Time is this machine's monotonic clock, which comes in; no other's is compared with it. Pure; not
// thread-safe.
class LeaseKeeper {
 public:
  // The rendezvous has answered the Join or Resume that was sent at `sent`.
  void OnWelcome(Duration lease, bool durable, TimePoint sent);

  // The number of a keep-alive that is sent now.
  std::int64_t Beat(TimePoint now);
  // That one was answered.
  void OnHeard(std::int64_t number);
  // The last that was; 0: none.
  std::int64_t last_heard() const { return last_heard_; }

  // At some time after `began` the daemon was dead, and nobody decided anything in its place.
  void OnNobodyDecides(TimePoint began);

  // When the workers must be dead; nothing where there is no lease, or before OnWelcome.
  std::optional<TimePoint> deadline() const;

  // When they must be killed by whoever watches an agent that stands still itself: a little later,
  // and still before their ranks are given away.
  std::optional<TimePoint> last_deadline() const;

  // When a connection over which nothing has been answered is to be given up for a new one: half
  // a lease after the oldest unanswered beat was sent. Nothing without one.
  std::optional<TimePoint> doubtful_from() const;

  // The connection is another: beats that are under way will not be answered.
  void OnNewConnection() { unanswered_.clear(); }

 private:
  void Answered(TimePoint sent);

  Duration lease_{};
  bool durable_ = false;
  std::optional<TimePoint> answered_;  // when the last that was answered was sent
  std::int64_t last_beat_ = 0;
  std::int64_t last_heard_ = 0;
  std::map<std::int64_t, TimePoint> unanswered_;  // beats, and when they were sent
};

}  // namespace muster::rendezvous
