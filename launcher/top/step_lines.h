// How far the ranks of a job have come, in lines.
#pragma once

#include <optional>
#include <vector>

#include "launcher/terminal/screen.h"
#include "rendezvous/core/snapshot.h"

namespace muster::launcher {

// A line of headings and one for each rank that tells of its steps, the chosen one with a '>'; or
// two lines, which say that none does.
std::vector<ScreenLine> StepLines(const rendezvous::JobSnapshot& job, std::optional<int> chosen);

}  // namespace muster::launcher
