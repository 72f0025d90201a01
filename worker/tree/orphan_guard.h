// Makes sure that nothing of a worker outlives an agent that was killed.
//
// The kernel ends a worker when its agent dies (PR_SET_PDEATHSIG), but not what the worker has
// started: `sh -c 'python train.py; ...'` would leave the python behind. The guard is a small
// process beside the agent that holds the other end of a pipe and finds the workers' process groups
// in memory shared with the agent. When the agent is gone, for whatever reason, the pipe ends. Then
// the guard kills the workers' cgroup, if there is one, and their groups, removes the socket that
// workers told the agent their steps by, and looks through /proc
// for orphans that have left both but carry the agent's mark (orphan_hunt.h). Once it has seen that
// nothing is left, it tells the server that the agent has named (death_notice.h), and ends.
//
// It is also a dead man's switch. The workers of an agent that has lost touch with the rendezvous
// must be dead before their ranks are given away, and the agent may be unable to kill them itself:
// it may be stopped (SIGSTOP) or hang in the kernel. So it tells the guard a time, which it moves
// forward as long as all is well; when that time comes, the guard kills what it would kill if the
// agent died.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "worker/tree/death_notice.h"

namespace muster::worker {

struct OrphanGuardOptions {
  // The largest number of groups at a time.
  std::size_t capacity = 0;
  // The mark in the workers' environment (agent_mark.h). Empty: the guard does not look for
  // orphans.
  std::string mark;
  // The directory of a cgroup that holds only workers; it is killed and removed. Empty: none.
  std::string cgroup;
  // A file of the agent's, which goes with it, and so does its directory when nothing else is
  // there. Empty: none.
  std::string file;
  // Whom to tell that the agent has died, once nothing is running any more that the guard watches
  // or that has the mark; nobody is told if the guard cannot be sure.
  std::optional<DeathNotice> death_notice;
};

// Memory shared with the guard process.
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
  // Ends the guard process without touching any group, and waits for its end.
  ~OrphanGuard();
  // Ends it, and leaves the waiting to the destructor. Nothing else may be called afterwards.
  void Dismiss();

  // After the guard process has died by itself: waits for it and starts another, which watches the
  // same groups and has the same deadline. On an error, also when that has been done too often,
  // there is no guard process any more.
  absl::Status StartAgain();

  // Negative when there is none.
  pid_t pid() const { return pid_; }

  // `group` is to be killed when the agent dies; or no longer, as its leader has been waited for
  // and its number may come to mean another. Only writes to memory: the guard does not wake up for
  // it.
  void Watch(pid_t group);
  void Forget(pid_t group);

  // When the workers are to be killed unless it has been moved by then; nullopt, as at first:
  // never. Moving it to a later time is cheap: it only writes to memory that the guard looks at
  // before it acts. While the time is in the past, groups that are watched are killed at once. The
  // agent finds dead what the guard has killed, and may continue from there with a new time.
  void SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline);

  // Whom OrphanGuardOptions::death_notice goes to is elsewhere from now on. Only writes to memory,
  // and may be interrupted by the end of this program at any point: the notice then goes to the one
  // place or the other.
  void MoveDeathNotice(const ServerAddress& to);

  // The guard has found a deadline passed, and has killed, at least once.
  bool has_struck() const;

 private:
  struct Unmap {
    void operator()(GuardMemory* shared) const;
  };
  using SharedMemory = std::unique_ptr<GuardMemory, Unmap>;

  OrphanGuard(OrphanGuardOptions options, SharedMemory memory)
      : options_(std::move(options)), memory_(std::move(memory)) {}
  absl::Status Launch();
  // Writes `after` to the first place in the table that holds `before`; false when none does.
  bool Replace(pid_t before, pid_t after);
  // Has the guard look at the memory.
  void Look();

  OrphanGuardOptions options_;
  // Outlives each guard process.
  SharedMemory memory_;
  pid_t pid_ = -1;
  base::UniqueFd pipe_;
  int deaths_ = 0;
};

}  // namespace muster::worker
