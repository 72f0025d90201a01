// `muster top` while it runs: the terminal, the watch, and what joins them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "rendezvous/client/daemon_options.h"

namespace muster::launcher {

struct TopEnd {
  // Why it could not begin or go on, in one sentence: FailedPrecondition, as this is no terminal
  // for it; else as JobWatch::Listener::OnOver.
  absl::Status status;
  // What ended it; 0: its user did, or the status says.
  int signal = 0;
};

// Shows the jobs of the daemon, and first of all the job `run_id` if that is not empty, until its
// user has seen enough, or a signal ends it. The terminal is as it was when this returns. It
// blocks; there may be no other loop in the process.
TopEnd RunTop(const rendezvous::DaemonOptions& daemon, const std::string& run_id);

}  // namespace muster::launcher
