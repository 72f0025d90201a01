// `muster ps`: the runs on this machine.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those behind `ps`: nothing for a table, --json for a JSON array (run_info.h), --help.
// Prints to stdout; that there are no runs, and warnings, to stderr. Returns the exit code: 0, also
// without runs; 1 when stdout cannot be written; 2 for other arguments.
int PsCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
