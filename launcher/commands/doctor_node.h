// One host's part in `muster doctor --hosts`: says what is wrong with it, and measures ways to
// others as it is told to.
#pragma once

#include <string>

#include "launcher/doctor/report.h"

namespace muster::launcher {

// `place` is INDEX@HOST:PORT: which host this is, and where others can reach it. Writes JSON to
// stdout, an object on each line, and reads what is to be done from stdin, likewise, until that
// ends. To stdout:
//   {"report": {...}, "address": "10.0.0.7", "port": 34567}     first; port 0: it cannot be reached
//   {"stage": 3, "way": {...}}, {"stage": 3, "arrival": {...}}  what was measured
// From stdin:
//   {"stage": 3, "encounters": [{"from": 0, "to": 1, "address": "10.0.0.8", "port": 34567,
//    "key": "16 characters"}, ...]}
// Returns the exit code.
int DoctorNode(const std::string& place, Report report);

}  // namespace muster::launcher
