// Finds a test's processes anywhere on the machine, whatever their parents are now.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace muster::test {

// A NAME=VALUE that no other test has. Put it into an agent's environment: every descendant
// inherits it, even an orphan.
std::string UniqueMark();

// The live processes (not zombies) whose environment contained `mark` at their last exec.
std::vector<pid_t> ProcessesWith(const std::string& mark);

// The children of a process that have not been waited for, including zombies.
std::vector<pid_t> ChildrenOf(pid_t parent);

// At how many TCP ports a process listens.
int ListeningTcpSockets(pid_t process);

// Waits until ProcessesWith(mark) are `count` processes; false if that takes more than half a
// minute.
[[nodiscard]] bool WaitForProcesses(const std::string& mark, std::size_t count);

}  // namespace muster::test
