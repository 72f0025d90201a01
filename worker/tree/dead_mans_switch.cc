#include "worker/tree/dead_mans_switch.h"

namespace muster::worker {

DeadMansSwitch::Step DeadMansSwitch::Next(Event event, TimePoint now,
                                          std::optional<TimePoint> deadline) {
  if (event == Event::kAgentGone) return {Step::kStandIn, std::nullopt};
  // One that was moved on in time is found here, and slept for: so nobody has to tell of it.
  if (!deadline.has_value() || now < *deadline) return {Step::kSleep, deadline};
  if (struck_for_ != deadline) {
    struck_for_ = deadline;
    return {Step::kStrike, std::nullopt};
  }
  return {event == Event::kLook ? Step::kKillLate : Step::kSleep, std::nullopt};
}

}  // namespace muster::worker
