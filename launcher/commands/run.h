// `muster run`: starts this node's workers, sees them through, and tells how it went.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those behind `run`. Returns the exit code.
int RunCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
