// `muster ps`: the runs on this machine, or on others.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

// Prints to stdout; warnings, and the note that there are no runs, go to stderr. Exit code: 0, even
// without runs; 1 when a host has not answered.
base::Command PsCommand();

}  // namespace muster::launcher
