// The timers of a loop: what is due, and no more than that.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include "base/lifetime.h"

namespace muster::base {

// Waits for one time at most. Whatever is set takes the place of what was set before, even if that
// time has come and its call is queued in the loop; nothing is called once it is cancelled or gone.
// Calls come from the loop, and may set, cancel or destroy the timer. `io` must outlive it. Not
// thread-safe.
template <typename Clock>
class BasicTimer {
 public:
  using TimePoint = typename Clock::time_point;
  using Duration = typename Clock::duration;

  explicit BasicTimer(boost::asio::io_context& io) : timer_(io) {}
  BasicTimer(const BasicTimer&) = delete;
  BasicTimer& operator=(const BasicTimer&) = delete;

  void At(TimePoint time, std::function<void()> ring) {
    timer_.expires_at(time);
    Wait(std::move(ring));
  }
  void After(Duration time, std::function<void()> ring) {
    timer_.expires_after(time);
    Wait(std::move(ring));
  }
  void Cancel() {
    ++set_;
    waits_ = false;
    timer_.cancel();
  }

  // The timer of a machine, whose deadline is asked for after each of its steps: `ring` is the step
  // that is due then. It stays as it is if it waits for that time already.
  template <typename Ring>
  void Follow(std::optional<TimePoint> deadline, Ring ring) {
    if (!deadline) return waits_ ? Cancel() : void();
    if (!waits_ || timer_.expiry() != *deadline) At(*deadline, std::move(ring));
  }

  // Something is set, and has not come.
  bool waits() const { return waits_; }
  // When what was set last is, or was, due.
  TimePoint expiry() const { return timer_.expiry(); }

 private:
  void Wait(std::function<void()> ring) {
    waits_ = true;
    timer_.async_wait(lifetime_.Guard(
        [this, set = ++set_, ring = std::move(ring)](const boost::system::error_code& error) {
          if (error || set != set_) return;
          waits_ = false;
          ring();
        }));
  }

  boost::asio::basic_waitable_timer<Clock> timer_;
  std::uint64_t set_ = 0;  // how often it was set or cancelled
  bool waits_ = false;
  const Lifetime lifetime_;
};

using Timer = BasicTimer<std::chrono::steady_clock>;

// Between attempts that fail one after another: `first`, then twice as long each time, up to
// `longest`.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  Backoff(Duration first, Duration longest) : first_(first), longest_(longest), next_(first) {}

  // The pause after one more failure.
  Duration Next() {
    const Duration pause = next_;
    next_ = std::min(2 * next_, longest_);
    return pause;
  }
  // An attempt has succeeded.
  void Reset() { next_ = first_; }

 private:
  const Duration first_;
  const Duration longest_;
  Duration next_;
};

}  // namespace muster::base
