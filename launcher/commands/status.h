// `muster status`: the jobs of a rendezvous.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `status`. Prints to stdout a table of all jobs, or of one job and its
// nodes and rounds; or JSON (job_view.h); with --watch again and again (watch_status.h). Returns
// the exit code: 0, even without jobs; 1 when there is no such job; 2 for a mistake in the
// arguments; 3 when no rendezvous answers; 4 when stdout cannot be written.
int StatusCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
