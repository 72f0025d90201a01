// How workers are asked, then made, to end: a signal, time to comply, SIGKILL. Only a description;
// GroupLife follows it.
#pragma once

#include <chrono>
#include <csignal>

namespace muster::worker {

struct StopLadder {
  using Duration = std::chrono::milliseconds;
  // A grace that never ends: SIGKILL comes only from StopNow().
  static constexpr Duration kForever = Duration::max();

  // The first rung, sent to every process that came from the workers. SIGKILL means: no grace.
  int first_signal = SIGTERM;
  // From the first signal to SIGKILL, which goes to all of these that are left. Zero or less: no
  // grace.
  Duration grace = std::chrono::seconds(30);
  // From SIGKILL until a worker that still has not ended (it hangs in the kernel, or a debugger
  // holds it) is given up and reported as unkillable.
  Duration give_up = std::chrono::seconds(5);

  // No grace: SIGKILL is the first rung.
  static StopLadder Now() { return {SIGKILL, Duration::zero()}; }

  bool KillsAtOnce() const { return first_signal == SIGKILL || grace <= Duration::zero(); }

  bool operator==(const StopLadder&) const = default;
};

}  // namespace muster::worker
