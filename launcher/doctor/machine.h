// All that a machine can find out about itself.
#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/report.h"
#include "launcher/environment.h"

namespace muster::launcher {

struct Examination {
  // Of --log-dir; empty: a directory in TMPDIR.
  std::string log_dir;
  std::vector<std::string> checkpoints;
  // The job is one of several machines.
  bool has_peers = false;
};

// Looks at this machine; on the main thread. May wait for DNS, disks, the driver of the GPUs and
// Python: for seconds, as a rule less than one.
Report ExamineMachine(const Examination& examination, const Environment& environment);

}  // namespace muster::launcher
