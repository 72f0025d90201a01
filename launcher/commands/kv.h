// `muster kv`: a job's key-value store for shell scripts.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `kv`. Reads stdin if a value comes from there, prints what was asked for
// to stdout, and returns the exit code: 0 done; 1 the answer is no, or did not come in time; 2 a
// mistake in the arguments; 3 anything else that went wrong.
int KvCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
