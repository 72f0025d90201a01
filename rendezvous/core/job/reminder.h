// When nodes that wait for a round are told why.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// They are told soon after a node has come, and again from time to time as long as the round
// gathers. Part of a Job.
class Reminder {
 public:
  // A node has begun to wait.
  void Begin(TimePoint now) {
    next_ = std::min(next_.value_or(TimePoint::max()), now + std::chrono::seconds(1));
  }
  // The nodes have been told, and still wait.
  void Told(TimePoint now) { next_ = now + std::chrono::seconds(10); }
  // None waits any more.
  void End() { next_.reset(); }

  bool IsDue(TimePoint now) const { return next_ && now >= *next_; }
  std::optional<TimePoint> next() const { return next_; }

 private:
  std::optional<TimePoint> next_;
};

}  // namespace muster::rendezvous
