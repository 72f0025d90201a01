// The ways between the hosts of a job, and what is wrong with them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launcher/doctor/report.h"
#include "launcher/doctor/way.h"

namespace muster::launcher {

struct MeasuredWay {
  Way way;
  Arrival arrival;
};

struct Ways {
  // Of all hosts, by their number.
  std::vector<std::string> hosts;
  // From the one that connects to the other.
  std::map<std::pair<int, int>, MeasuredWay> measured;
};

// Finds what drops, rejects, swallows large packets, is much slower than the others, or has another
// time. What is slow is said by ratios to the median of all ways, as nobody knows here what the
// network is meant to do.
void Judge(const Ways& ways, Report& report);

// How many seconds each host's clock is ahead of the median of all, by round trips; only of hosts
// from which a way was measured.
std::map<int, double> ClocksAhead(const Ways& ways);

// Versions that hosts of one job should have alike, and have not. `versions` are those of each
// host's report, by the host's name.
void JudgeDifferences(const std::map<std::string, std::map<std::string, std::string>>& versions,
                      Report& report);

}  // namespace muster::launcher
