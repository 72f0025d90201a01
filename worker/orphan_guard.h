// Sees to it that nothing of a worker outlives an agent that was killed.
//
// The kernel ends a worker when its agent dies (PR_SET_PDEATHSIG), but not what the worker has
// started: `sh -c 'python train.py; ...'` would leave the python behind. The guard is a small
// process beside the agent that holds the other end of a pipe and knows the workers' process
// groups. When the agent is gone, however it went, the pipe ends, and the guard kills the groups
// and ends.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "worker/unique_fd.h"

namespace muster::worker {

// Lives with one WorkerGroup, on its thread. The guard process has a session of its own, none of
// the agent's descriptors, and ignores every signal that can be ignored.
class OrphanGuard {
 public:
  // Starts the guard process, for at most `capacity` groups at a time. May be called in a process
  // with threads: after fork nothing but async-signal-safe calls are made.
  static absl::StatusOr<OrphanGuard> Start(std::size_t capacity);

  OrphanGuard(OrphanGuard&& other) noexcept;
  OrphanGuard& operator=(OrphanGuard&&) = delete;
  // Ends the guard process without harm to any group.
  ~OrphanGuard();

  // `group` is to be killed when the agent dies; or no longer, as none of it is left.
  void Watch(pid_t group);
  void Forget(pid_t group);

 private:
  OrphanGuard(pid_t pid, UniqueFd pipe) : pid_(pid), pipe_(std::move(pipe)) {}

  pid_t pid_;
  UniqueFd pipe_;
};

}  // namespace muster::worker
