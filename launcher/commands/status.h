// `muster status`: the jobs of a rendezvous.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

// Prints to stdout a table of all jobs, or of one job and its nodes and rounds; or JSON
// (status_view.h); with --watch, again whenever something has changed: on a terminal in the same
// place, else one block after another, or with --json one line after another. Its exit codes are in
// its help.
base::Command StatusCommand();

}  // namespace muster::launcher
