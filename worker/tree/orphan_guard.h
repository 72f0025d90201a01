// Makes sure that nothing started by a worker outlives a killed agent.
//
// The kernel kills a worker when its agent dies (PR_SET_PDEATHSIG), but not the worker's children:
// `sh -c 'python train.py; ...'` would leave the python behind. The guard is a small process that
// holds the other end of a pipe to the agent and reads the workers' process groups from shared
// memory. When the agent dies, for whatever reason, the pipe closes. The guard then kills the
// workers' cgroup, if there is one, and their groups, removes the beat socket, and searches /proc
// for orphans that have left both but carry the agent's mark (orphan_hunt.h). Once nothing is left
// it sends the death notice (death_notice.h), and exits.
//
// It is also a dead man's switch. The workers of an agent that has lost touch with the rendezvous
// must be dead before their ranks are given away, and the agent may be unable to kill them: it may
// be stopped (SIGSTOP) or hang in the kernel. So the agent sets a deadline and moves it forward as
// long as all is well; when it passes, the guard kills the workers as it would on the agent's
// death.
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
  // The mark in the workers' environment (orphan_hunt.h). Empty: do not search for orphans.
  std::string mark;
  // The directory of a cgroup that contains only workers; killed and removed. Empty: none.
  std::string cgroup;
  // A file of the agent to remove, and its directory if that is then empty. Empty: none.
  std::string file;
  // Sent after the agent's death once nothing watched or marked is running; not sent if the guard
  // cannot be sure.
  std::optional<DeathNotice> death_notice;
};

// Memory shared with the guard process.
struct GuardMemory;

// Lives with one WorkerGroup, on its thread. The guard process leads a session of its own, has none
// of the agent's descriptors, and blocks every signal that can be blocked.
class OrphanGuard {
 public:
  // Starts the guard process. May be called in a process with threads: after the fork it makes only
  // async-signal-safe calls.
  static absl::StatusOr<OrphanGuard> Start(const OrphanGuardOptions& options);

  OrphanGuard(OrphanGuard&& other) noexcept;
  OrphanGuard& operator=(OrphanGuard&&) = delete;
  // Kills the guard process without touching any group, and waits for its exit.
  ~OrphanGuard();
  // Kills it, and leaves the waiting to the destructor. Call nothing else afterwards.
  void Dismiss();

  // Call after the guard process has died: waits for it and starts another with the same groups and
  // deadline. After an error, which includes too many deaths, there is no guard process.
  absl::Status StartAgain();

  // Negative if there is none.
  pid_t pid() const { return pid_; }

  // Watch() marks `group` to be killed when the agent dies. Forget() reverses that; call it when
  // the group's leader has been waited for, as its id may be reused. Both only write to shared
  // memory, and do not wake the guard.
  void Watch(pid_t group);
  void Forget(pid_t group);

  // Sets when the workers are killed unless the deadline is moved before; nullopt, the initial
  // value: never. Moving it later is cheap: it only writes to memory that the guard reads before it
  // acts. While it is in the past, newly watched groups are killed at once. After a strike the
  // agent finds its workers dead, and may continue with a new deadline.
  void SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline);

  // Changes the receiver of OrphanGuardOptions::death_notice. Only writes to memory, and may be
  // interrupted by this program's death: the notice then goes to either the old or the new one.
  void MoveDeathNotice(const ServerAddress& to);

  // The guard has killed at least once because a deadline passed.
  bool has_struck() const;

 private:
  struct Unmap {
    void operator()(GuardMemory* shared) const;
  };
  using SharedMemory = std::unique_ptr<GuardMemory, Unmap>;

  OrphanGuard(OrphanGuardOptions options, SharedMemory memory)
      : options_(std::move(options)), memory_(std::move(memory)) {}
  absl::Status Launch();
  // Replaces the first `before` in the table by `after`; false if there is none.
  bool Replace(pid_t before, pid_t after);
  // Makes the guard look at the shared memory.
  void Look();

  OrphanGuardOptions options_;
  // Outlives each guard process.
  SharedMemory memory_;
  pid_t pid_ = -1;
  base::UniqueFd pipe_;
  int deaths_ = 0;
};

// When the guard kills the workers: its decisions without process, pipe and clock.
//
// The agent sets a deadline and moves it forward as long as all is well. When a deadline passes,
// the guard strikes, once per deadline. Workers may still appear after that, if an agent that stood
// still wakes up while starting them: while the deadline is in the past, the guard kills those
// whenever the agent asks it to look.

// Deterministic, and safe in a forked child of a multi-threaded process: it allocates no memory and
// makes no calls.
class DeadMansSwitch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // What happened since the last step.
  enum class Event {
    kNothing,    // time has passed, or the last step is done
    kLook,       // the agent asks the guard to look at the shared memory
    kAgentGone,  // the agent has exited or released the guard
  };

  struct Step {
    enum Kind {
      kSleep,     // until `until` (nullopt: no limit) or the next Event
      kStrike,    // kill all workers
      kKillLate,  // kill workers that appeared since the strike
      kStandIn,   // last step: the agent is gone, so clean up in its place
    };
    Kind kind = kSleep;
    std::optional<TimePoint> until;

    bool operator==(const Step&) const = default;
  };

  // `deadline` was read at or after `now`; nullopt: none.
  Step Next(Event event, TimePoint now, std::optional<TimePoint> deadline);

 private:
  // The deadline of the last strike.
  std::optional<TimePoint> struck_for_;
};

}  // namespace muster::worker
