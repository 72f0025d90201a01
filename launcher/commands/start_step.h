// `muster run` in a Slurm allocation: starts the job on its nodes as a step.
#pragma once

#include "launcher/hosts/slurm_step.h"

namespace muster::launcher {

// Becomes srun, which shows what workers print, passes signals on and has the job's exit code.
// Returns the exit code only if there is no srun, after saying so on stderr.
int StartStep(const SlurmStep& step);

}  // namespace muster::launcher
