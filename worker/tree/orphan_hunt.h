// How the guard of a dead agent ends what escaped from the workers' process groups. Everything here
// is async-signal-safe: no memory is allocated, as the guard was forked from a program that may
// have had threads.
#pragma once

#include <chrono>

namespace muster::worker {

// Sends SIGKILL to each process that has `mark` in its environment (AddMark), has our user id, and
// was orphaned to the same process as we were: the calling process must itself be an orphan with
// that parent. Repeats this, as it orphans the processes below them, until none is left, for
// `limit` at most. True when no process with the mark is left, whatever its parent, and none is in
// the middle of an exec, where a process shows no environment.
//
// Nothing else is hit: a job that a worker has submitted to a scheduler may have inherited the
// mark, but its parent is the scheduler.
bool KillOrphans(const char* mark, std::chrono::seconds limit);

// Removes a cgroup directory and those below it; false when a process is still in one of them. Only
// empty ones are removed.
bool RemoveCgroupTree(const char* path);

}  // namespace muster::worker
