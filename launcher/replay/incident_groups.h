// The same thing said on a thousand nodes is shown once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/replay/timeline.h"

namespace muster::launcher {

struct IncidentGroup {
  Offset at{0};  // the first time
  std::string what;
  std::size_t count = 0;
  std::size_t node = 0;  // of the first
  int rank = -1;         // of the first
};

// What ended no round: ranks that were stopped or slow, nodes that were out of touch. By time.
std::vector<Incident> Besides(const Timeline& timeline);

// Incidents with the same words within a second, by time; at most `most` groups. `left_out`, unless
// null, is how many incidents are in none.
std::vector<IncidentGroup> GroupIncidents(const std::vector<Incident>& incidents, std::size_t most,
                                          std::size_t* left_out);

}  // namespace muster::launcher
