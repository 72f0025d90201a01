// `muster run` and `muster launch`: starts this node's workers, supervises them to the end, and
// reports how it went.
#pragma once

#include <string>
#include <vector>

#include "launcher/flags/flag_scanner.h"

namespace muster::launcher {

// `args` are those after `run` or `launch`. Returns the exit code.
int RunCommand(const std::vector<std::string>& args, Dialect dialect);

}  // namespace muster::launcher
