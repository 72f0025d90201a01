// `muster doctor`: what is wrong with this machine, or between several, before a job finds out.
#pragma once

#include <string>

#include "base/cli/command.h"
#include "base/json.h"
#include "launcher/doctor/link_measurement.h"

namespace muster::launcher {

// Prints a report to stdout. Main thread; may take seconds. Its exit codes are in its help.
base::Command DoctorCommand();

// The links between hosts for people, as tables, and for programs.

// Latency and bandwidth, from the host of the row to that of the column: "x" where no connection
// came about, "-" where nothing was measured. With more than eight hosts, the least, the median and
// the greatest. Empty where nothing was measured.
std::string LinksText(const LinkMeasurements& links);

// [{"from": "node0", "to": "node1", "connects": true, "latency_us": 80.5, "gbit_per_s": 9.4,
//   "clock_ahead_s": 0.0001, "largest_packet": 1500}]
base::Json LinksJson(const LinkMeasurements& links);

}  // namespace muster::launcher
