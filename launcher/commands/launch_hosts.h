// `muster run --hosts=...`: starts a job on other hosts and shows what comes from them.
#pragma once

#include "launcher/cli/hosts_run.h"

namespace muster::launcher {

// Returns when no node is left, with the job's exit code: that of the node that serves the
// rendezvous, or of the first that failed; 3 when hosts that the job needs could not be reached or
// were lost, and 128+n when signal n came before any node began.
int LaunchHosts(HostsRun run);

}  // namespace muster::launcher
