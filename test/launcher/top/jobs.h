// Jobs to be looked at, and screens as rows of text.
#pragma once

#include <string>
#include <vector>

#include "launcher/top/screen.h"
#include "rendezvous/core/values/snapshot.h"

namespace muster::launcher {

// Two nodes with four ranks each. Rank 5 has failed once, in round 0, which ran for 61 s; round 1
// runs for 250 s.
rendezvous::JobSnapshot RestartedJob();

// A job that runs on so many nodes with so many ranks each.
rendezvous::JobSnapshot RunningJob(const std::string& run_id, int nodes, int slots);

// Its rows, without blanks at their ends.
std::vector<std::string> Rows(const Screen& screen);

}  // namespace muster::launcher
