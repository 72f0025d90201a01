// A timeline as text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/replay/timeline.h"

namespace muster::launcher {

// The job's outcome and goodput, the rounds with their causes, the cost of each restart, and notes
// about the logs. Control characters, which workers' messages may contain, become '?'.
std::string TextView(const Timeline& timeline);

// The format of moments in all views: "4.143 s".
std::string MomentText(Offset at);
// "2026-11-25 12:10:00.123 UTC".
std::string OriginText(const Timeline& timeline);
// "87.3 %".
std::string GoodputText(const Timeline& timeline);
// "3 rounds, 2 nodes, 4 ranks": the ranks are the largest round's.
std::string SizeText(const Timeline& timeline);

// The tables of text and page, with the same columns and words.
struct ReplayTable {
  const char* title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows{};
  // In the table of other incidents.
  std::size_t left_out = 0;
};
ReplayTable RoundsOf(const Timeline& timeline);
ReplayTable RestartsOf(const Timeline& timeline);
// Incidents that ended no round: at most `most` rows.
ReplayTable BesidesOf(const Timeline& timeline, std::size_t most);

// The same thing said on a thousand nodes is shown once.

struct IncidentGroup {
  Offset at{0};  // of the first one
  std::string what;
  std::size_t count = 0;
  std::size_t node = 0;  // of the first one
  int rank = -1;         // of the first one
};

// Incidents that ended no round, such as stopped or slow ranks and disconnected nodes. Sorted by
// time.
std::vector<Incident> Besides(const Timeline& timeline);

// Groups incidents with equal words within a second, sorted by time; at most `most` groups. Sets
// `left_out`, unless null, to the number of incidents without a group.
std::vector<IncidentGroup> GroupIncidents(const std::vector<Incident>& incidents, std::size_t most,
                                          std::size_t* left_out);

}  // namespace muster::launcher
