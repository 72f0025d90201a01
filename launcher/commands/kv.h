// `muster kv`: a job's key-value store for shell scripts.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those behind `kv`. Reads stdin where a value comes from there, prints what was asked
// for to stdout, and returns the exit code: 0 done; 1 the answer is no, or it did not come in time;
// 2 for a mistake in the arguments; 3 for everything else that went wrong.
int KvCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
