// A timeline as one HTML file that loads nothing else.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/json.h"
#include "launcher/replay/timeline.h"

namespace muster::launcher {

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

}  // namespace muster::launcher
