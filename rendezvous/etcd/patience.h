// How long an answer of etcd is waited for.
#pragma once

#include <algorithm>
#include <chrono>

namespace muster::rendezvous::etcd {

// An etcd that is slow would never be heard if each attempt were given up after the usual time: it
// does what it is asked for, and nobody waits for the answer. Up to version 3.4 it looks at all
// keys of a range for each page that is read. So a transaction that no member has answered in time
// waits twice as long the next time, and those after it begin with that; and as soon as answers
// come quickly again, a member that says nothing is not waited for any longer than usual.
class Patience {
 public:
  using Duration = std::chrono::milliseconds;
  Patience(Duration usual, int most_times) : usual_(usual), most_(usual * most_times) {}

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

}  // namespace muster::rendezvous::etcd
