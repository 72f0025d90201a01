// Sees to it that nothing of a worker outlives an agent that was killed.
//
// The kernel ends a worker when its agent dies (PR_SET_PDEATHSIG), but not what the worker has
// started: `sh -c 'python train.py; ...'` would leave the python behind. The guard is a small
// process beside the agent that holds the other end of a pipe and finds the workers' process groups
// in memory that they share. When the agent is gone, however it went, the pipe ends. Then the guard
// kills the workers' cgroup, where there is one, and their groups, looks through /proc for orphans
// that have left both but carry the agent's mark (orphan_hunt.h). Once it has seen that nothing is
// left, it says so to whom the agent has named (death_notice.h), and ends.
//
// It is a dead man's switch, too. An agent that has lost touch with the rendezvous must have its
// workers dead before their ranks are given away, and it may be unable to see to that itself: it
// may be stopped (SIGSTOP) or hang in the kernel. So it tells the guard a time, which it moves on
// as long as all is well; when that time comes, the guard kills what it would kill if the agent
// died.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "worker/tree/death_notice.h"

namespace muster::worker {

struct OrphanGuardOptions {
  // How many groups there are at most at a time.
  std::size_t capacity = 0;
  // What the workers have in their environment (agent_mark.h). Empty: nothing is looked for.
  std::string mark;
  // The directory of a cgroup that holds nothing but workers, killed and removed; empty: none.
  std::string cgroup;
  // Who is to know that the agent has died, once nothing runs any more that the guard watches or
  // that has the mark; nobody hears anything where the guard can't tell.
  std::optional<DeathNotice> death_notice;
};

// Memory that the guard process sees, too.
struct GuardMemory;

// Lives with one WorkerGroup, on its thread. The guard process has a session of its own, none of
// the agent's descriptors, and blocks every signal that can be blocked.
class OrphanGuard {
 public:
  // Starts the guard process. May be called in a process with threads: after fork nothing but
  // async-signal-safe calls are made.
  static absl::StatusOr<OrphanGuard> Start(const OrphanGuardOptions& options);

  OrphanGuard(OrphanGuard&& other) noexcept;
  OrphanGuard& operator=(OrphanGuard&&) = delete;
  // Ends the guard process without harm to any group, and waits for its end.
  ~OrphanGuard();
  // Ends it, and leaves the waiting for the destructor. Only that may be called afterwards.
  void Dismiss();

  pid_t pid() const { return pid_; }

  // `group` is to be killed when the agent dies; or no longer, as its leader has been waited for
  // and its number may come to mean another. A store to memory: the guard does not wake up for it.
  void Watch(pid_t group);
  void Forget(pid_t group);

  // When the workers are to be killed unless it has been moved by then; nullopt, as at first:
  // never. Cheap to move to a later time: that is a store to memory that the guard looks at before
  // it acts. While the time lies in the past, groups that are watched are killed at once. What the
  // guard has killed the agent finds dead, and may go on from there with a new time.
  void SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline);

  // The guard has found a deadline passed, and killed, at least once.
  bool has_struck() const;

 private:
  struct Unmap {
    void operator()(GuardMemory* shared) const;
  };
  using SharedMemory = std::unique_ptr<GuardMemory, Unmap>;

  OrphanGuard(pid_t pid, base::UniqueFd pipe, SharedMemory shared)
      : pid_(pid), pipe_(std::move(pipe)), memory_(std::move(shared)) {}
  // In the first place of the table that holds `before`; false when none does.
  bool Replace(pid_t before, pid_t after);
  // Has the guard look at the memory.
  void Look();

  pid_t pid_;
  base::UniqueFd pipe_;
  SharedMemory memory_;
};

}  // namespace muster::worker
