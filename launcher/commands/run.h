// `muster run` and `muster launch`: starts this node's workers, sees them through, and tells how it
// went.
#pragma once

#include <string>
#include <vector>

#include "launcher/flags/flag_scanner.h"

namespace muster::launcher {

// `args` are those behind `run` or `launch`. Returns the exit code.
int RunCommand(const std::vector<std::string>& args, Dialect dialect);

}  // namespace muster::launcher
