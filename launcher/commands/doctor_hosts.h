// `muster doctor --hosts=...`: asks every host what is wrong with it, and has the ways between them
// measured.
#pragma once

#include "launcher/config/hosts_run.h"
#include "launcher/doctor/report.h"
#include "launcher/doctor/ways.h"

namespace muster::launcher {

struct HostsReport {
  Report report;
  Ways ways;
};

// Starts a doctor's node on every host through the launch tree, over the connections that `muster
// run --hosts` uses, and ends them. Says on stderr how far it is. Returns when nothing is left
// there. `run.command` is the directories for checkpoints. SIGINT and SIGTERM end this process and,
// as with any job, what it has started.
HostsReport ExamineHosts(const HostsRun& run, const std::string& token);

}  // namespace muster::launcher
