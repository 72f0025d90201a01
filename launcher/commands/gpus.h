// `muster gpus`: the GPUs of this machine, and whether they are fit.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `gpus`: none for a table, --json, --check, or --help. Prints to stdout;
// what is wrong, and the note that there are no GPUs, go to stderr. Returns the exit code: 0; 1
// when --check finds a GPU that is not fit or does not answer, or none; 2 for any other arguments;
// 4 when stdout cannot be written. May take seconds where no process holds the driver awake.
int GpusCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
