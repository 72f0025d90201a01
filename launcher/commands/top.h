// `muster top`: the jobs of a rendezvous on the whole terminal.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

base::Command TopCommand();

}  // namespace muster::launcher
