// The rounds of a job in lines: when each began, what it cost, and why it is over.
#pragma once

#include <string>
#include <vector>

#include "launcher/terminal/screen.h"
#include "rendezvous/core/snapshot.h"

namespace muster::launcher {

// A line of headings and, the latest round first, a line for each with a bar, '-' for the time that
// it gathered and '=' for the time that it ran, and lines with why it is over.
std::vector<ScreenLine> TimelineLines(const rendezvous::JobSnapshot& job, int columns);

}  // namespace muster::launcher
