// When the guard beside the workers kills them (orphan_guard.h): the guard without its process, its
// pipe and its clock.
//
// The agent names a time, which it moves forward as long as all is well. When that time comes
// without having been moved, the guard strikes, once for each time that was named. Workers may
// appear after that, when an agent that stood still wakes up in the middle of starting them: as
// long as the time is in the past, those are killed as soon as the agent has the guard look.
#pragma once

#include <chrono>
#include <optional>

namespace muster::worker {

// Deterministic, and safe in a forked child of a process with threads: it neither allocates nor
// calls anything.
class DeadMansSwitch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // What has happened since the last step.
  enum class Event {
    kNothing,    // only time has passed, or the last step was carried out
    kLook,       // the agent asks the guard to look at what it has written
    kAgentGone,  // it has ended, or has let go of the guard
  };

  struct Step {
    enum Kind {
      kSleep,     // until `until`, or for ever, or until an Event comes, whichever is first
      kStrike,    // kill all there is
      kKillLate,  // kill the workers that have appeared since the strike
      kStandIn,   // the agent is gone, and the guard ends what it would have ended; the last step
    };
    Kind kind = kSleep;
    std::optional<TimePoint> until;

    bool operator==(const Step&) const = default;
  };

  // `deadline` is the one that holds at `now`, or was named since; nullopt: never.
  Step Next(Event event, TimePoint now, std::optional<TimePoint> deadline);

 private:
  // The last deadline for which it has struck.
  std::optional<TimePoint> struck_for_;
};

}  // namespace muster::worker
