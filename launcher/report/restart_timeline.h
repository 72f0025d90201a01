// How long each restart of this node's workers took, step by step: what the user is told at the end
// of a run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/report/agent_event.h"

namespace muster::launcher {

// A restart begins when the agent learns that a round is over, from a failure here or by being
// told, and is done when the next round's workers run:
//
//   detected -> told -> stopped -> rejoined -> started -> first beat
//
// (the last only where workers beat).
// Pure: the time comes in with each event.
class RestartTimeline {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void On(const AgentEvent& event, Time time);

  // One line for each restart that was done, in the past tense:
  // "round 0 ended: rank 1 exited with code 1; the workers of round 1 ran 9.8 ms later (told 0.4
  // ms, stopped 2.1 ms, rejoined 2.2 ms)". All times are from when it was detected.
  std::vector<std::string> Lines() const;

 private:
  struct Restart {
    rendezvous::RoundNumber round = rendezvous::kNoRound;
    std::string cause;
    Time detected;
    std::optional<Time> told;
    std::optional<Time> stopped;
    std::optional<Time> rejoined;
    Time started;
    rendezvous::RoundNumber next_round = rendezvous::kNoRound;
    std::optional<Time> first_beat;
  };

  // The restart in progress.
  std::optional<Restart> current_;
  std::vector<Restart> done_;
};

}  // namespace muster::launcher
