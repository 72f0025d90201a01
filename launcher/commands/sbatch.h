// `muster sbatch`: a job for Slurm's queue.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `sbatch`. Becomes sbatch, with the script on its standard input, so the
// exit code is sbatch's; or prints the script, or the help text. Returns 2, with a sentence on
// stderr, when the arguments make no sense, and 4 when there is no sbatch or stdout cannot be
// written.
int SbatchCommand(std::vector<std::string> args);

}  // namespace muster::launcher
