// `muster stop`: ends runs of this machine.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

// Ends once the runs have ended. Exit code: 0; 1 when one has not in time; 2 when there is no such
// run; 4 when one may not be signalled.
base::Command StopCommand();

}  // namespace muster::launcher
