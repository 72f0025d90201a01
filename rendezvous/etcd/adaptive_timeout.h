// How long an answer of etcd is waited for.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace muster::rendezvous::etcd {

// An etcd that is slow would never be heard if each attempt were given up after the usual time: it
// does what it is asked for, and nobody waits for the answer. Up to version 3.4 it looks at all
// keys of a range for each page that is read. So a transaction that no member has answered in time
// waits twice as long the next time, and those after it begin with that; and as soon as answers
// come quickly again, a member that says nothing is not waited for any longer than usual.
class AdaptiveTimeout {
 public:
  using Duration = std::chrono::milliseconds;
  AdaptiveTimeout(Duration usual, int most_times) : usual_(usual), most_(usual * most_times) {}

  // What a transaction begins with.
  Duration now() const { return now_; }

  // Nothing was heard for `waited` from any member; what the same transaction goes on with.
  Duration Longer(Duration waited) {
    const Duration longer = std::min(2 * waited, most_);
    now_ = std::max(now_, longer);
    return longer;
  }

  // One was answered after `took`: four times as long is enough.
  void Answered(std::chrono::nanoseconds took) {
    while (now_ > usual_ && took < now_ / 4) now_ = std::max(now_ / 2, usual_);
  }

 private:
  const Duration usual_;
  const Duration most_;
  Duration now_ = usual_;
};

// A trouble that goes on is told again, and does not flood a log.

// At once when it begins, then once a minute until it is over.
class Reminder {
 public:
  using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

  // There is trouble; whether to tell it now, which is then taken as done.
  bool IsDue(TimePoint now) {
    if (told_ && now < *told_ + std::chrono::minutes(1)) return false;
    told_ = now;
    return true;
  }
  void Over() { told_.reset(); }

 private:
  std::optional<TimePoint> told_;
};

}  // namespace muster::rendezvous::etcd
