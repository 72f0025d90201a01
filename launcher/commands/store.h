// `muster store`: serves a store for torch.distributed on its own, for tests and tools.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `store`. Serves until SIGTERM or SIGINT, and then returns exit code 0; 2
// for a mistake in the arguments; 3 when it cannot listen.
int StoreCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
