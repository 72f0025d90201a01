// Finds a test's processes all over the machine, whoever their parents are by now.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace muster::test {

// A NAME=VALUE that no other test has. Put into an agent's environment, it is inherited by every
// process that comes from it, and no orphan can lose it.
std::string UniqueMark();

// The live processes (not zombies) whose environment, as it was at their last exec, holds `mark`.
std::vector<pid_t> ProcessesWith(const std::string& mark);

// The children of a process that have not been waited for, zombies included.
std::vector<pid_t> ChildrenOf(pid_t parent);

// Waits until there are `count` of them; false when that does not come about within half a minute.
[[nodiscard]] bool WaitForProcesses(const std::string& mark, std::size_t count);

}  // namespace muster::test
