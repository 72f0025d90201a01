// How the guard of a dead agent ends what escaped from the workers' process groups. Everything here
// is async-signal-safe: no memory is allocated, as the guard was forked from a program that may
// have had threads.
#pragma once

#include <chrono>

namespace muster::worker {

// Sends SIGKILL to each process that has `mark` in its environment (AddMark), has our user id, and
// was orphaned in our direction, that is to the same process as we were: the calling process must
// be an orphan of the same parent. Again and again, as those below them are orphaned by that, until
// none is left, for `limit` at most. True when none is left that has the mark, whoever its parent,
// and none that is in the middle of an exec, where a process shows no environment.
//
// Nobody else is hit: a job that a worker has submitted to a scheduler may have inherited the mark,
// but the scheduler is its parent.
bool KillOrphans(const char* mark, std::chrono::seconds limit);

// Removes a cgroup directory and those below it; false when somebody is still in one of them. Only
// empty ones are removed.
bool RemoveCgroupTree(const char* path);

}  // namespace muster::worker
