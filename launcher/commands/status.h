// `muster status`: the jobs of a rendezvous.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `status`. Prints to stdout a table of all jobs, or with --rdzv-id that job
// and its nodes; or JSON (job_view.h). Returns the exit code: 0, even without jobs; 1 when there is
// no such job, or stdout cannot be written; 2 for a mistake in the arguments; 3 when no rendezvous
// answers.
int StatusCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
