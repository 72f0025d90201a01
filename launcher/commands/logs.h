// `muster logs`: what the workers of a job print, wherever they run.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are the arguments after `logs`. The exit codes are in its help.
int LogsCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
