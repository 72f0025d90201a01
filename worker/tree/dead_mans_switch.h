// When the guard (orphan_guard.h) kills the workers: its decisions without process, pipe and clock.
//
// The agent sets a deadline and moves it forward as long as all is well. When a deadline passes,
// the guard strikes, once per deadline. Workers may still appear after that, if an agent that stood
// still wakes up while starting them: while the deadline is in the past, the guard kills those
// whenever the agent asks it to look.
#pragma once

#include <chrono>
#include <optional>

namespace muster::worker {

// Deterministic, and safe in a forked child of a multi-threaded process: it allocates no memory and
// makes no calls.
class DeadMansSwitch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // What happened since the last step.
  enum class Event {
    kNothing,    // time has passed, or the last step is done
    kLook,       // the agent asks the guard to look at the shared memory
    kAgentGone,  // the agent has exited or released the guard
  };

  struct Step {
    enum Kind {
      kSleep,     // until `until` (nullopt: no limit) or the next Event
      kStrike,    // kill all workers
      kKillLate,  // kill workers that appeared since the strike
      kStandIn,   // last step: the agent is gone, so clean up in its place
    };
    Kind kind = kSleep;
    std::optional<TimePoint> until;

    bool operator==(const Step&) const = default;
  };

  // `deadline` was read at or after `now`; nullopt: none.
  Step Next(Event event, TimePoint now, std::optional<TimePoint> deadline);

 private:
  // The deadline of the last strike.
  std::optional<TimePoint> struck_for_;
};

}  // namespace muster::worker
