// A timeline as a page: one file that needs no other, from no host.
#pragma once

#include <string>

#include "launcher/replay/timeline.h"

namespace muster::launcher {

// The page: what became of the job, its goodput, the rounds with their causes, the cost of each
// restart by phase, the ranks of the chosen round as a grid (a cell for each node where there are
// very many), and what is to be said about the logs. Its policy allows nothing but its own style
// and script, which are named by their hashes. Whatever the logs say is text in it.
std::string HtmlView(const Timeline& timeline);

}  // namespace muster::launcher
