// An agent's side of its lease: how long its workers may run without a word from the rendezvous.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// The rendezvous gives a node's ranks away when it has not heard from the node for its lease. By
// then the node's workers must be dead, or two rounds' workers would run at the same time. So the
// agent counts its lease from when it *sent* the last message that was answered, which is earlier
// than when that was heard, and counts only five sixths of it (jepsen.io on etcd 3.4.3: a lease
// alone is not a lock).
//
// One other thing counts: proof that the daemon is dead and that nobody decides anything until it
// is started again (wire/liveness_probe.h). A daemon that remembers its jobs (Welcome::durable)
// then gives every node a whole lease from that start, so the lease runs from when the question was
// sent. The proof does not renew a lease that had ended by then: it may also have ended at the
// daemon while that was alive. Silence proves nothing, and neither does a refused connection:
// something on the way may refuse it while the daemon is alive and gives ranks away.
//
// Time comes in, from this machine's monotonic clock; no other clock is compared with it. Pure; not
// thread-safe.
class LeaseKeeper {
 public:
  // The rendezvous has answered the Join or Resume that was sent at `sent`.
  void OnWelcome(Duration lease, bool durable, TimePoint sent);

  // The number of a keep-alive that is sent now.
  std::int64_t Beat(TimePoint now);
  // That one was answered.
  void OnHeard(std::int64_t number);
  // The number of the last answered keep-alive; 0: none.
  std::int64_t last_heard() const { return last_heard_; }

  // At some time after `began` the daemon was dead, and nobody decided anything in its place.
  void OnNobodyDecides(TimePoint began);

  // When the workers must be dead; nullopt if there is no lease, or before OnWelcome.
  std::optional<TimePoint> deadline() const;

  // When the guard must kill them if the agent itself stands still: a little later, but still
  // before their ranks are given away.
  std::optional<TimePoint> last_deadline() const;

  // When a connection over which nothing has been answered is to be given up for a new one: half a
  // lease after the oldest unanswered beat was sent. nullopt without such a beat.
  std::optional<TimePoint> doubtful_from() const;

  // There is a new connection: beats that are on their way will not be answered.
  void OnNewConnection() { unanswered_.clear(); }

 private:
  void Answered(TimePoint sent);

  Duration lease_{};
  bool durable_ = false;
  std::optional<TimePoint> answered_;  // when the last answered message was sent
  std::int64_t last_beat_ = 0;
  std::int64_t last_heard_ = 0;
  std::map<std::int64_t, TimePoint> unanswered_;  // beats, and when they were sent
};

}  // namespace muster::rendezvous
