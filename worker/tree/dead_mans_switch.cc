#include "worker/tree/dead_mans_switch.h"

namespace muster::worker {

DeadMansSwitch::Step DeadMansSwitch::Next(Event event, TimePoint now,
                                          std::optional<TimePoint> deadline) {
  if (event == Event::kAgentGone) return {Step::kStandIn, std::nullopt};
  // Finds a deadline that was moved in time here and sleeps on, so moving it needs no wake-up.
  if (!deadline.has_value() || now < *deadline) return {Step::kSleep, deadline};
  if (struck_for_ != deadline) {
    struck_for_ = deadline;
    return {Step::kStrike, std::nullopt};
  }
  return {event == Event::kLook ? Step::kKillLate : Step::kSleep, std::nullopt};
}

}  // namespace muster::worker
