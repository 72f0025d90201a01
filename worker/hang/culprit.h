// Which rank is to blame for a hang: a decision, which reads nothing itself.
#pragma once

#include <vector>

#include "worker/flight/flight_place.h"

namespace muster::worker {

// A rank that may be to blame (HangWatch::Suspects).
struct HangSuspect {
  int rank = 0;
  // It, or a process that came from it, is stopped (SIGSTOP).
  bool stopped = false;
};

struct Culprit {
  int rank = 0;
  // Its log says that it waits for others in an operation, and nothing says that these are ranks of
  // this node: the rank to blame is likely to run on another node.
  bool only_waits = false;

  bool operator==(const Culprit&) const = default;
};

// `suspects` are never empty, and the one that fell silent first comes first. Who is stopped is to
// blame; else whom the others wait for, by the logs of `flights`; else who fell silent first. Where
// one of these leaves several, the next decides among them.
Culprit PickCulprit(const std::vector<HangSuspect>& suspects,
                    const std::vector<RankFlight>& flights);

}  // namespace muster::worker
