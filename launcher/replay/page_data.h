// What the page's script shows of a timeline, as JSON.
#pragma once

#include "base/json.h"
#include "launcher/replay/timeline.h"

namespace muster::launcher {

// With more ranks than this in a round, the grid has a cell for each node instead.
inline constexpr int kMostRankCells = 1024;

// {"nodes":[id...], "byNode":bool, "chosen":index of the round that is shown first,
//  "layouts":[[[node, first rank, workers]...]...],
//  "rounds":[{"number":0, "layout":index, "states":"sfx..", one letter for each member of the
//             layout, "failed":[[member, rank]...], "missing":nodes without a log,
//             "events":[[ms, words, how often]...], "more":events left out}...]}
//
// The letters: s succeeded, f failed, x stopped, e its log ends, w never ran. Rounds with the same
// nodes in the same places share a layout, so that a round of a thousand nodes takes a kilobyte.
base::Json PageData(const Timeline& timeline);

}  // namespace muster::launcher
