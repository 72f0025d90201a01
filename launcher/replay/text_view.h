// A timeline as text for a terminal.
#pragma once

#include <string>

#include "launcher/replay/timeline.h"

namespace muster::launcher {

// What became of the job and its goodput, the rounds with their causes, the cost of each restart,
// and what is to be said about the logs. Control characters, which a worker's words may have, are
// shown as '?'.
std::string TextView(const Timeline& timeline);

// How all views write times: "4.143 s", and of a duration "2.1 ms" or "12.40 s".
std::string MomentText(Offset at);
std::string DurationText(Offset duration);
// "2026-11-25 12:10:00.123 UTC".
std::string OriginText(const Timeline& timeline);
// "87.3 %".
std::string GoodputText(const Timeline& timeline);
// "3 rounds, 2 nodes, 4 ranks": the ranks are those of the largest round.
std::string SizeText(const Timeline& timeline);

}  // namespace muster::launcher
