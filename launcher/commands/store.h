// `muster store`: serves a store for torch.distributed on its own, for tests and tools.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

// Serves until SIGTERM or SIGINT. Exit code 4 when it cannot listen.
base::Command StoreCommand();

}  // namespace muster::launcher
