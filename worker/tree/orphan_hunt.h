// How a dead agent's guard kills processes that have left the workers' process groups. The guard's
// part is async-signal-safe and allocates no memory, as the guard was forked from a program that
// may have threads.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

// Sends SIGKILL to each process that has `mark` in its environment (AddMark), has our user id, and
// was orphaned to our own parent: the caller must be an orphan itself. Killing orphans their
// children, so this repeats until none is left, for at most `limit`. True if no process with the
// mark is left, whatever its parent, and none is in the middle of an exec, when it shows no
// environment.
//
// Kills nothing else: a job that a worker submitted to a scheduler may have inherited the mark, but
// its parent is the scheduler.
bool KillOrphans(const char* mark, std::chrono::seconds limit);

// Removes a cgroup directory and those below it; false if one of them still contains a process.
bool RemoveCgroupTree(const char* path);

// A mark in the environment of every worker, inherited by its children, which finds them when
// nothing else connects them to the worker.

// This process's own mark, constant and unique on this machine. Letters, digits and dashes.
const std::string& AgentMark();

// Adds `mark` to MUSTER_AGENT_ID in an environment ("NAME=value" each). An agent may run below
// another agent's worker, so existing marks are kept, separated by colons.
void AddMark(std::string_view mark, std::vector<std::string>* env);

// Whether the process had `mark` in its environment at its exec. False if it has exited, belongs to
// another user, or has overwritten its environment.
bool HasMark(pid_t pid, std::string_view mark);

}  // namespace muster::worker
