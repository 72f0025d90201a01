// A mark in the environment of every worker, by which what comes from it can be found when nothing
// else connects the two any more.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

// This process's own mark: unique on this machine, and the same whenever it is asked for. Letters,
// digits and dashes.
const std::string& AgentMark();

// Puts `mark` into an environment ("NAME=value" each), as MUSTER_AGENT_ID. An agent may run below
// another agent's worker: existing marks are kept, separated by colons.
void AddMark(std::string_view mark, std::vector<std::string>* env);

// Whether the process had `mark` in its environment when it called exec. False when it has ended,
// is somebody else's, or has overwritten its environment.
bool HasMark(pid_t pid, std::string_view mark);

}  // namespace muster::worker
