// `muster replay`: what happened to a job, from the event logs of its nodes.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `replay`. Prints a summary to stdout, and writes a page or a trace where
// that is asked for. Returns the exit code: 0; 2 for a mistake in the arguments, and for logs that
// cannot be read, have a newer version or are of several jobs; 4 when something cannot be written.
int ReplayCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
