// `muster sbatch`: a job for Slurm's queue.
#pragma once

#include "base/cli/command.h"
#include "launcher/cli/slurm.h"

namespace muster::launcher {

// Becomes sbatch, with the script on its standard input, so the exit code is sbatch's; or prints
// the script. Exit code 4 when there is no sbatch.
base::Command SbatchCommand();

// `muster run` in a Slurm allocation: starts the job on its nodes as a step.

// Runs srun, which shows what workers print, to its end. A signal that asks the run to end is
// passed on to the step's agents as an order, since srun itself would kill the step: workers have
// their time, and a second one ends them at once. Whatever ends this process, the step does not
// outlive it. To be called on the main thread.
//
// Returns the job's exit code; where there is no srun, that of a node that failed, after saying so
// on stderr.
int StartStep(const SlurmStep& step);

}  // namespace muster::launcher
