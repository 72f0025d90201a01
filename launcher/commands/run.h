// `muster run` and `muster launch`: starts this node's workers, supervises them to the end, and
// reports how it went.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

base::Command RunCommand();
base::Command LaunchCommand();

}  // namespace muster::launcher
