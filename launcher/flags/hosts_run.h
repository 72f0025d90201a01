// What a command line with --hosts or --hostfile means.
#pragma once

#include "absl/status/statusor.h"
#include "launcher/config/hosts_run.h"
#include "launcher/environment.h"
#include "launcher/flags/flag_scanner.h"

namespace muster::launcher {

// Whether the job is to be started on hosts from here.
bool AsksForHosts(const RunFlags& flags);

// Checks that the parts fit together, and reads the hostfile. What the flags mean on a host is for
// the host to say: this machine may have other devices, and no such script. An error's message is a
// sentence for the user.
absl::StatusOr<HostsRun> MakeHostsRun(const ScannedArgs& scanned, Dialect dialect,
                                      const Environment& environment);

}  // namespace muster::launcher
