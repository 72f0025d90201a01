// `muster token`: makes and shows the secret that the nodes of jobs share.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

base::Command TokenCommand();

}  // namespace muster::launcher
