// How a group of workers reacts to events: its decisions without processes, timers and loop.
//
//   kNew --Begin--> kRunning -------------a failure, Stop-----------------------> kStopping
//                      |  \--all have succeeded and left something--> kWaiting ----^  |
//                      |                                             Stop, too long   | the grace
//                      |              a ladder without grace                          | is over
//                      +-----------------------------------------------------> kKilling
//                      |                                                           |
//                      +-- no worker is left, nor anything that came from one --> kDone <-- give-up
//
// If all workers have succeeded, leftovers such as an upload are waited for during the grace,
// unless LeftoverPolicy says otherwise.
//
// The ladder's first signal goes to the workers and the programs that they wait for, so that a
// program's children still serve it while it saves. The grace lasts until the last of the workers'
// trees is gone; everything that remains then gets SIGKILL. What has not exited `give_up` after
// that is left behind. A second Stop() can only make SIGKILL come earlier.
//
// An exited worker's leftovers get SIGTERM, and then the whole grace as well. The first SIGTERM
// comes kSettle after the worker's exit: by then processes that die with it are gone, and new forks
// have called exec. Leftovers are looked for again at growing intervals while a process is
// answering, as on a busy machine fork to exec may take long, and whenever an orphan has exited.
// The grace is restarted only for processes that existed when the group began to stop, so that a
// chain of processes that start one another cannot delay SIGKILL forever.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker/exit_status.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// How the workers of one group ended.

// How one started worker ended.
struct WorkerExit {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  // nullopt: it survived SIGKILL for StopLadder::give_up, and is left behind.
  std::optional<ExitStatus> status;
  // It was still running when the group began to stop.
  bool stopped_by_group = false;
  // What it was doing when it was given up: "is in state D (uninterruptible sleep) in
  // nfs_wait_bit". Empty if it has exited.
  std::string stuck;
};

enum class GroupEnd {
  kSucceeded,  // every worker exited with 0 by itself
  kFailed,     // a worker failed: GroupResult::failure
  kStopped,    // the group was stopped before either
};

struct GroupResult {
  GroupEnd end = GroupEnd::kSucceeded;
  // The first failure, in the order in which exits were observed; set only for kFailed.
  std::optional<FailureRecord> failure;
  // Workers that also failed by themselves, before the stop signal reached them, in the order in
  // which their exits were observed. A stopped worker's exit is never a failure.
  std::vector<FailureRecord> other_failures;
  // One for each started worker, in the order of the specs.
  std::vector<WorkerExit> exits;
  // Bytes of worker output that log files rejected (disk full).
  std::uint64_t log_bytes_dropped = 0;
};

// How a worker that was started ended.
enum class WorkerEnd {
  kSucceeded,  // with exit code 0
  kFailed,     // in any other way
  kStopped,    // in any way, after the group had begun to stop
  // With a failure that all others will probably repeat, such as the exit code for wrong arguments.
  // If it is the first exit, the others have GroupLife::kForAlike to follow before they are
  // stopped.
  kFailedAsAllMay,
};

// What a GroupLife decides is done here: by the WorkerGroup, and in tests by one that is simulated.
class GroupPort {
 public:
  virtual ~GroupPort() = default;

  // Every worker has been started.
  virtual void TellStarted() = 0;
  // The first worker failed, or is about to; nullopt: one could not be started. `alike`: all
  // workers have ended with WorkerEnd::kFailedAsAllMay. GroupLife::Stop() may be called from
  // inside.
  virtual void TellFirstFailure(std::optional<std::size_t> worker, bool alike) = 0;
  // Another worker failed by itself: with the first, or while the group was already stopping.
  virtual void KeepFailure(std::size_t worker, bool alike) = 0;
  // The group begins to stop: no more workers are started, and those that have not ended by now end
  // as WorkerEnd::kStopped.
  virtual void Halt() = 0;
  // Sends `signal` to the workers and whoever they wait for (signal_targets.h), and continues what
  // is stopped (SIGSTOP), which could not answer it otherwise.
  virtual void SignalWorkers(int signal) = 0;
  // SIGKILL to every process of the tree; with `again`, for what was started meanwhile.
  virtual void KillTree(bool again) = 0;

  // Whether anything is left that came from a worker; none is left itself.
  virtual bool AnyLeft() = 0;
  // Sends SIGTERM to what ended workers have left behind (LadderRunner::StopLeftovers). It has
  // `grace` to end. In the answer: some that got it now were there when the group began to stop;
  // some are answering a signal, or have not reached their exec yet, so look again.
  struct Stopped {
    bool any_from_before = false;
    bool look_again = false;
  };
  virtual Stopped StopLeftovers(StopLadder::Duration grace) = 0;
  // The grace is over: reports what workers have left behind and KillTree is going to end.
  virtual void NameLeftovers() = 0;
  // All workers have succeeded: says what is still waited for, and for how long at most.
  virtual void SayWaiting(StopLadder::Duration limit) = 0;
  // Names what workers have left running, and has nothing of the group end it.
  virtual void KeepLeftovers() = 0;
  // Reports what SIGKILL has not ended within `after`, and leaves it behind.
  virtual void LeaveBehind(StopLadder::Duration after) = 0;

  // The group is done; GroupLife::end() says how. The last call; may destroy the life.
  virtual void Finish() = 0;
};

// Deterministic: time comes in. Any of its methods may end in GroupPort::Finish().
class GroupLife {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kSettle{200};

  // The ranks of a node start together, and check their arguments at about the same time.
  static constexpr std::chrono::seconds kForAlike{1};
  // How long to wait before telling the user.
  static constexpr std::chrono::seconds kSilence{1};

  // `ladder` is for what is left after the first failure; by `leftovers`, also for what workers
  // have left running that all succeeded. `port` must outlive it.
  GroupLife(GroupPort& port, const StopLadder& ladder,
            LeftoverPolicy leftovers = LeftoverPolicy::kWait)
      : port_(port), ladder_(ladder), policy_(leftovers) {}

  // Workers are about to be started.
  void Begin() { state_ = State::kRunning; }
  // Workers are numbered from 0 in start order.
  void WorkerStarted() { ++running_; }
  // There are no more workers to start: all have been started, or those that were left when the
  // group began to stop have been dropped.
  void StartsOver(TimePoint now);
  // A worker could not be started, and no more will be.
  void StartFailed(TimePoint now);
  void WorkerExited(std::size_t worker, WorkerEnd end, TimePoint now);
  // A worker is about to end of a SIGKILL of ours, which is a failure unless the group is stopping
  // already. If it is told, its exit is kStopped.
  void WorkerKilled(std::size_t worker, TimePoint now);
  // Something that came from a worker that has ended has ended as well.
  void OrphanEnded(TimePoint now);

  // Ends all workers, and what they have started, by `ladder`. A ladder that is already running is
  // kept, and only comes to SIGKILL sooner if the new one would.
  void Stop(const StopLadder& ladder, TimePoint now);

  // To be called at NextDeadline() or later; does nothing before then.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  bool is_new() const { return state_ == State::kNew; }
  // Started workers whose exit was not reported yet.
  int running() const { return running_; }
  // How the group has ended so far.
  GroupEnd end() const { return end_; }

 private:
  enum class State { kNew, kRunning, kWaiting, kStopping, kKilling, kDone };

  void BeginStop(const StopLadder& ladder, TimePoint now);
  void HastenKill(const StopLadder& ladder, TimePoint now);
  void Kill(TimePoint now);
  void StopLeftoversSoon(TimePoint now);
  void StopLeftovers(TimePoint now);
  // Whether the others may still end like the worker that has ended in this way.
  bool IsToBeHeld(WorkerEnd end) const;
  void TellFirst(std::optional<std::size_t> worker, TimePoint now);
  void TellHeld(bool alike, TimePoint now);
  void KeepHeld();
  void LookIfNoneRuns(TimePoint now);
  void SettleLeftovers(TimePoint now);
  void Finish();

  GroupPort& port_;
  const StopLadder ladder_;
  const LeftoverPolicy policy_;
  State state_ = State::kNew;
  GroupEnd end_ = GroupEnd::kSucceeded;
  int running_ = 0;
  bool any_ended_ = false;
  // Workers whose failure is not reported yet, in order of exit, and how long to wait.
  std::vector<std::size_t> held_;
  std::optional<TimePoint> held_until_;
  bool alike_ = false;
  // No more workers will be started.
  bool starts_over_ = false;
  // Of the running ladder; the shortest grace of all Stop() calls.
  StopLadder::Duration grace_{};
  StopLadder::Duration give_up_{};
  // The next rung: the end of the wait, SIGKILL, then giving up.
  std::optional<TimePoint> rung_at_;
  // When to tell the user about the wait, or to stop leftovers again; and the pause before that.
  std::optional<TimePoint> leftovers_at_;
  std::chrono::milliseconds pause_{};
};

}  // namespace muster::worker
