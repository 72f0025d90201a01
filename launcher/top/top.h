// `muster top` while it runs: connects the terminal and the watch.
#pragma once

#include <string>

#include "absl/status/status.h"

#include "rendezvous/client/daemon_channel.h"

namespace muster::launcher {

struct TopEnd {
  // Why it could not start or continue, in one sentence: FailedPrecondition for an unusable
  // terminal, otherwise as in JobWatch::Listener::OnOver.
  absl::Status status;
  // The signal that ended it; 0: the user quit, or see status.
  int signal = 0;
};

// Shows the daemon's jobs, starting with `run_id` unless that is empty, until the user quits or a
// signal arrives. Restores the terminal. Blocks; the process must have no other loop.
TopEnd RunTop(const rendezvous::DaemonOptions& daemon, const std::string& run_id);

}  // namespace muster::launcher
