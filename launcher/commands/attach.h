// `muster attach`: what a run prints that was started with --detach.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `attach`. Prints what the run has printed and what it prints until it
// ends, and returns the run's exit code; 4 after a sentence when it was killed, or when there is
// nothing to read; 2 for bad arguments.
int AttachCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
