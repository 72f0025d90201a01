// The runs of this machine as a table for people.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "launcher/registry/run_info.h"

namespace muster::launcher {

// A line of headings and one for each run, in aligned columns two blanks apart:
//   RUN  PID  NODE  DEVICES  RANKS  STATE  SINCE  LOGS  SCRIPT
// and HOST before it where one is set.
// "-" stands for what a run does not have; UUIDs are cut to their first block. Times are shown in
// `zone`. Control characters are shown as '?'.
std::string RunTable(const std::vector<RunInfo>& runs, absl::TimeZone zone);

}  // namespace muster::launcher
