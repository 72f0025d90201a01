// A clock, and one timer of it.
#pragma once

#include <functional>
#include <optional>

#include "rendezvous/etcd/election.h"

namespace muster::rendezvous::etcd {

// What a Candidate has of the loop that it lives on; in tests that of a simulated machine.
class Alarm {
 public:
  virtual ~Alarm() = default;

  // Goes on while the machine sleeps (Election).
  virtual Election::TimePoint Now() const = 0;

  // Calls `ring` from the loop, once, when it is that time or is past it; never from within this
  // call, nor after the alarm's end. What was set before no longer rings. nullopt: nothing does.
  virtual void Set(std::optional<Election::TimePoint> time, std::function<void()> ring) = 0;
};

}  // namespace muster::rendezvous::etcd
