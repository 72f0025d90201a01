// `muster status --watch`.
#pragma once

#include <string>

#include "rendezvous/client/daemon_options.h"

namespace muster::launcher {

// Prints the jobs of the daemon, or the job `run_id`, again whenever something has changed: on a
// terminal in the same place, else one block after another, or with `json` one line after another
// (watch_view.h). Ends when the only job that is watched has ended, with the exit code that this
// job's `muster run` has; or, with a sentence on stderr, as `muster status` does.
int WatchStatus(const rendezvous::DaemonOptions& daemon, const std::string& run_id, bool json);

}  // namespace muster::launcher
