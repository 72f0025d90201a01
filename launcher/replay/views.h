// The views of a timeline: as text for a terminal, as one HTML file, and as a trace.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/json.h"
#include "launcher/replay/timeline.h"

namespace muster::launcher {

// A timeline as text for a terminal.

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

// A timeline as one HTML file that loads nothing else.

// The page: the job's outcome, its goodput, the rounds with their causes, the cost of each restart
// by phase, the ranks of the selected round as a grid (a cell per node if there are very many), and
// notes about the logs. Its Content-Security-Policy allows only its own style and script, by their
// hashes. Text from the logs is always escaped.
std::string HtmlView(const Timeline& timeline);

// Escapes text from logs for the page.

// For element content and quoted attributes. This and the next one also make text safe to show
// (base/safe_text.h).
std::string HtmlText(absl::string_view text);

// For a script element of type application/json: contains no '<', so that it cannot close the
// element.
std::string JsonForHtml(const base::Json& value);

// The source expression with which a Content-Security-Policy allows an inline script or style of
// exactly this content: "'sha256-...'".
std::string PolicyHash(absl::string_view content);

// The data of the page's script, as JSON.

// With more ranks than this in a round, the grid has a cell per node.
inline constexpr int kMostRankCells = 1024;

// {"nodes":[id...], "byNode":bool, "chosen":index of the round that is shown first,
//  "layouts":[[[node, first rank, workers]...]...],
//  "rounds":[{"number":0, "layout":index, "states":"sfx..", one letter for each member of the
//             layout, "failed":[[member, rank]...], "missing":nodes without a log,
//             "events":[[ms, words, how often]...], "more":events left out}...]}
//
// The letters: s succeeded, f failed, x stopped, e its log ends, w never ran. Rounds with the same
// nodes in the same places share a layout, which keeps a round of a thousand nodes at a kilobyte.
base::Json PageData(const Timeline& timeline);

// A timeline as a trace for Perfetto and Chrome.

// The JSON object format of Chrome's trace events ("Trace Event Format", Google, 2016), one event
// per line, with times in microseconds since the timeline's origin.
//
// The first process is the job, with one thread for its rounds and one for its restarts by phase.
// Each node is a process, with a thread for its agent and one for each rank that it has had. Slices
// of a rank are its rounds; instants are incidents.
std::string TraceView(const Timeline& timeline);

}  // namespace muster::launcher
