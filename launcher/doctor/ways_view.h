// The ways between hosts for people, as tables, and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "launcher/doctor/ways.h"

namespace muster::launcher {

// Latency and bandwidth, from the host of the row to that of the column: "x" where no connection
// came about, "-" where nothing was measured. With more than eight hosts, the least, the median and
// the greatest. Empty where nothing was measured.
std::string WaysText(const Ways& ways);

// [{"from": "node0", "to": "node1", "connects": true, "latency_us": 80.5, "gbit_per_s": 9.4,
//   "clock_ahead_s": 0.0001, "largest_packet": 1500}]
base::Json WaysJson(const Ways& ways);

}  // namespace muster::launcher
