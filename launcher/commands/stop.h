// `muster stop`: ends runs of this machine.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `stop`. Returns once the runs have ended: 0; 1 when one has not in time; 2
// when there is no such run, or for bad arguments; 4 when one may not be signalled.
int StopCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
