// `muster ps`: the runs on this machine.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `ps`: none for a table, --json for a JSON array (run_info.h), or --help.
// Prints to stdout; warnings, and the note that there are no runs, go to stderr. Returns the exit
// code: 0, even without runs; 4 when stdout cannot be written; 2 for any other arguments.
int PsCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
