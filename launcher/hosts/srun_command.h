// The command that starts Muster on all nodes of a Slurm allocation at once.
#pragma once

#include <string>
#include <vector>

#include "launcher/hosts/slurm_step.h"

namespace muster::launcher {

// The descriptor of the agents from which they read orders.
inline constexpr int kOrdersFd = 4;

// One step, with one process on each node, beside whatever else the job runs there: `program` as it
// is here, else what PATH has; where there is neither, one line on stderr says so and the exit code
// is 127. Srun's standard input, which all its processes get, begins with a line for the token,
// empty where none is made; what follows is there on kOrdersFd.
std::vector<std::string> SrunCommand(const SlurmStep& step, const std::string& program);

}  // namespace muster::launcher
