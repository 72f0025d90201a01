// Sees to it that nothing of a worker outlives an agent that was killed.
//
// The kernel ends a worker when its agent dies (PR_SET_PDEATHSIG), but not what the worker has
// started: `sh -c 'python train.py; ...'` would leave the python behind. The guard is a small
// process beside the agent that holds the other end of a pipe and knows the workers' process
// groups. When the agent is gone, however it went, the pipe ends. Then the guard kills the workers'
// cgroup, where there is one, and their groups, looks through /proc for orphans that have left both
// but carry the agent's mark (orphan_hunt.h), and ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/unique_fd.h"

namespace muster::worker {

struct OrphanGuardOptions {
  // How many groups there are at most at a time.
  std::size_t capacity = 0;
  // What the workers have in their environment (agent_mark.h). Empty: nothing is looked for.
  std::string mark;
  // The directory of a cgroup that holds nothing but workers, killed and removed; empty: none.
  std::string cgroup;
};

// Lives with one WorkerGroup, on its thread. The guard process has a session of its own, none of
// the agent's descriptors, and ignores every signal that can be ignored.
class OrphanGuard {
 public:
  // Starts the guard process. May be called in a process with threads: after fork nothing but
  // async-signal-safe calls are made.
  static absl::StatusOr<OrphanGuard> Start(const OrphanGuardOptions& options);

  OrphanGuard(OrphanGuard&& other) noexcept;
  OrphanGuard& operator=(OrphanGuard&&) = delete;
  // Ends the guard process without harm to any group.
  ~OrphanGuard();

  pid_t pid() const { return pid_; }

  // `group` is to be killed when the agent dies; or no longer, as its leader has been waited for
  // and its number may come to mean another.
  void Watch(pid_t group);
  void Forget(pid_t group);

 private:
  OrphanGuard(pid_t pid, UniqueFd pipe) : pid_(pid), pipe_(std::move(pipe)) {}

  pid_t pid_;
  UniqueFd pipe_;
};

}  // namespace muster::worker
