// What `muster doctor` finds between several machines, and how it is shown.
#pragma once

#include <string>

#include "base/json.h"
#include "launcher/cli/hosts_run.h"
#include "launcher/doctor/link_measurement.h"
#include "launcher/doctor/report.h"

namespace muster::launcher {

// The links between hosts for people, as tables, and for programs.

// Latency and bandwidth, from the host of the row to that of the column: "x" where no connection
// came about, "-" where nothing was measured. With more than eight hosts, the least, the median and
// the greatest. Empty where nothing was measured.
std::string LinksText(const LinkMeasurements& links);

// [{"from": "node0", "to": "node1", "connects": true, "latency_us": 80.5, "gbit_per_s": 9.4,
//   "clock_ahead_s": 0.0001, "largest_packet": 1500}]
base::Json LinksJson(const LinkMeasurements& links);

// `muster doctor --hosts=...`: asks every host what is wrong with it, and has the links between
// them measured (doctor_hosts.cc).

struct HostsReport {
  Report report;
  LinkMeasurements links;
};

// Starts a doctor's node on every host through the launch tree, over the connections that `muster
// run --hosts` uses, and ends them. Says on stderr how far it is. Returns when nothing is left
// there. `run.command` is the directories for checkpoints. SIGINT and SIGTERM end this process and,
// as with any job, what it has started.
HostsReport ExamineHosts(const HostsRun& run, const std::string& token);

// One host's part in `muster doctor --hosts`: says what is wrong with it, and measures links to
// others as it is told to.

// `place` is INDEX@HOST:PORT: which host this is, and where others can reach it. Writes JSON to
// stdout, an object on each line, and reads what is to be done from stdin, likewise, until that
// ends. To stdout:
//   {"report": {...}, "address": "10.0.0.7", "port": 34567}     first; port 0: it cannot be reached
//   {"stage": 3, "link": {...}}, {"stage": 3, "arrival": {...}}  what was measured
// From stdin:
//   {"stage": 3, "encounters": [{"from": 0, "to": 1, "address": "10.0.0.8", "port": 34567,
//    "key": "16 characters"}, ...]}
// Returns the exit code.
int DoctorNode(const std::string& place, Report report);

}  // namespace muster::launcher
