// The workers of one node in one round: started together and ended together.
//
// The first worker that fails (an exit code other than 0, a signal, or it cannot be started) is
// reported at once through on_first_failure; then the others are ended by the stop ladder, and
// however they end no longer counts as a failure. A worker that exits with 0 while others run is
// fine, and what it has left behind may continue until the last worker has ended, and for as long
// as LeftoverPolicy says then, which changes nothing in how the group has ended. GroupLife decides
// what is done when (group_life.h), and this is its port: the processes and the timer.
//
// The ladder's first signal goes to each worker and, if that is a wrapper, to the program that it
// waits for (signal_targets.h); never to a program's own children, which it may need to save.
// Leftovers of an exited worker get SIGTERM and the whole grace, and are named. SIGKILL goes to
// everything that came from the workers, even in other sessions. So neither a shell that dies of
// SIGTERM nor one that waits costs its python the time or the signal that it needs to save.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "base/async/timer.h"
#include "base/lifetime.h"
#include "worker/exit_status.h"
#include "worker/group/group_life.h"
#include "worker/group/group_worker.h"
#include "worker/group/ladder_runner.h"
#include "worker/process/process.h"
#include "worker/tree/cgroup.h"
#include "worker/tree/death_notice.h"
#include "worker/tree/orphan_guard.h"
#include "worker/tree/worker_tree.h"
#include "worker/worker_spec.h"

namespace muster::worker {

class Console;

struct WorkerGroupOptions {
  // For the other workers after the first failure, and for leftovers.
  StopLadder ladder;
  // For leftovers once all workers have succeeded.
  LeftoverPolicy leftovers = LeftoverPolicy::kWait;
  // Put the workers into a control group of their own if permitted (cgroup.h).
  bool use_cgroup = true;
  // Sent when this program has died and nothing of the workers is left.
  std::optional<DeathNotice> death_notice{};
  // OrphanGuardOptions::file.
  std::string file_of_agent{};
  // Whether all others will probably exit like a failed worker. They then have a second to do so
  // before they are stopped (WorkerEnd::kFailedAsAllMay). Null: never.
  std::function<bool(const ExitStatus&)> may_be_end_of_all{};
  // Workers that are done may wait for one another before they exit (group_worker.h).
  bool ends_together = false;
};

// A worker that has not exited yet.
struct RunningWorker {
  int rank = 0;
  pid_t pid = 0;
};

// Called from the loop, never inside a method of the group. May be empty.
struct WorkerGroupCallbacks {
  // At most once, before on_done and before the other workers are stopped.
  std::function<void(const FailureRecord&)> on_first_failure;
  // Exactly once after Start(): all workers and their descendants are gone (or given up, or kept),
  // and their output has been passed on. Only within this callback may the group be destroyed and
  // another one started.
  std::function<void(const GroupResult&)> on_done;
  // Once, when every worker has called exec; never if one could not be started, or the group was
  // stopped before.
  std::function<void()> on_started;
  // A worker was stopped: `what` is a phrase that follows "rank 3": "was stopped by SIGSTOP".
  // Covers the worker itself, not its children, and not one held by a debugger (worker_tree.h).
  std::function<void(int rank, pid_t pid, const std::string& what)> on_stopped;
  // It was continued.
  std::function<void(int rank, pid_t pid)> on_continued;
  // A log file of this rank has begun to lose output: `what` says which and why, "write
  // /logs/2/stderr.log: No space left on device". Once per file.
  std::function<void(int rank, const std::string& what)> on_output_lost;
  // A warning for the user that changed nothing, one sentence: "rank 2: write /logs/2/stderr.log:
  // No space left on device; output is being lost" (for the first file only; the amount follows at
  // the end).
  std::function<void(const std::string&)> on_warning;
};

// Lives on the loop's thread, which must be the program's main thread: the kernel ends the workers
// (PR_SET_PDEATHSIG) when the thread that forked them ends. `io` and `console` must outlive the
// group. A group runs once, and only one at a time: while it runs, the program adopts the orphans
// of its workers (worker_tree.h).
class WorkerGroup final : private GroupPort {
 public:
  WorkerGroup(boost::asio::io_context& io, WorkerGroupOptions options, Console& console,
              WorkerGroupCallbacks callbacks);
  // Kills what is left of the workers and what came from them, and waits briefly for its end. No
  // callback runs.
  ~WorkerGroup() override;
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Starts one process per spec, in order, and returns when each has called exec (about 1 ms each).
  // If one cannot be started, the rest are not tried; on_first_failure follows from the loop. If
  // the system cannot create a process now (fork: EAGAIN, ENOMEM), the rest are retried from the
  // loop for two seconds before that counts as a failure. Call once only; `specs` must not be
  // empty.
  void Start(std::vector<WorkerSpec> specs);

  // Ends all workers and their descendants by `ladder`. A running ladder continues; it only reaches
  // SIGKILL sooner if the new one would. No effect before Start() and after on_done.
  void Stop(const StopLadder& ladder);

  // Passes `signal`, which is not a request to stop, to each running worker or the program that it
  // waits for (SignalPurpose::kNotice).
  void ForwardSignal(int signal);

  // Stop all workers and their descendants (SIGSTOP), and continue those. A group that must stop
  // continues first.
  void Suspend();
  void Resume();

  // Sends `signal` to a worker or its descendant. If that worker fails, `reason` is the cause: "its
  // watchdog timer 'step' expired". SIGKILL to a worker is its failure, and is reported (from the
  // loop) before failures that it may cause, even if the worker takes long to die. False, without a
  // signal, if `pid` does not belong to this group.
  bool KillFor(pid_t pid, int signal, const std::string& reason);

  // Excludes a child of this program that leads a session but is not a worker's, such as a debugger
  // attached to one. Call it before control returns to the loop.
  void ExcludeChild(pid_t child);

  // When output of the worker with this rank was last read; nullopt if never. An inherited stream
  // is not read (output.h), unless OutputSpec::keep_tail is set.
  std::optional<std::chrono::steady_clock::time_point> LastOutput(int rank) const;

  // At this time all workers and their descendants get SIGKILL, whatever happens to this program,
  // unless the deadline is moved before; nullopt, the initial value: never. Move it forward while
  // the node is in touch with the rendezvous; that is cheap. May be called before Start(). No
  // worker is started after the deadline. Workers killed or not started because of it have
  // FailureRecord::lost_touch.
  void SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline);

  // Changes the receiver of WorkerGroupOptions::death_notice. Call it after Start(); cheap.
  void MoveDeathNotice(const ServerAddress& to);

  // Started workers that have not exited.
  int running() const { return life_.running(); }
  std::vector<RunningWorker> RunningWorkers() const;
  // Bytes of output that log files have rejected so far.
  std::uint64_t log_bytes_dropped() const;
  // Pids of the started workers, in the order of the specs.
  std::vector<pid_t> pids() const;

 private:
  absl::Status StartWorker(const WorkerSpec& spec);
  void StartGuard(std::size_t capacity);
  void OnGuardStarted();
  void OnGuardDied();
  void WatchStops();
  GroupWorker* FindByPid(pid_t pid) const;
  void OnExit(std::size_t worker, const ExitStatus& status);
  void OnKilled(std::size_t worker);
  void OnLogLoss(int rank, const std::string& what);

  // Tells the life of an event, and sets the timer to its deadline, unless it is over now.
  template <typename... Params, typename... Values>
  void Live(void (GroupLife::*event)(Params...), const Values&... values);

  // GroupPort.
  void TellStarted() override;
  void TellFirstFailure(std::optional<std::size_t> index, bool alike) override;
  void KeepFailure(std::size_t index, bool alike) override;
  void Halt() override;
  void SignalWorkers(int signal) override { ladder_->Signal(signal); }
  void KillTree(bool again) override { ladder_->Kill(again); }
  bool AnyLeft() override { return ladder_->AnyLeft(); }
  Stopped StopLeftovers(StopLadder::Duration grace) override;
  void NameLeftovers() override { Warn(ladder_->DescribeKill()); }
  void SayWaiting(StopLadder::Duration limit) override { Warn(ladder_->DescribeWait(limit)); }
  void KeepLeftovers() override;
  void LeaveBehind(StopLadder::Duration after) override;
  void Finish() override;

  FailureRecord RecordFailure(const GroupWorker& worker, bool alike);
  // All workers have exited or been given up.
  void CompleteResult();
  // Does nothing with an empty sentence.
  void Warn(const std::string& sentence) const;
  void MakeEndPipe();

  boost::asio::io_context& io_;
  const WorkerGroupOptions options_;
  Console& console_;
  const WorkerGroupCallbacks callbacks_;

  GroupLife life_;
  // For the life's deadline.
  base::Timer timer_;
  StartQueue starts_;
  // The record of the worker that could not be started.
  std::optional<FailureRecord> start_failure_;
  GroupResult result_;  // as far as known
  bool halted_ = false;
  bool log_loss_told_ = false;
  // While the workers run.
  std::optional<OomWatch> oom_;
  std::optional<WorkerCgroup> cgroup_;
  std::optional<EndPipe> end_pipe_;  // until all workers are started
  std::optional<WorkerStarter> starter_;
  std::optional<WorkerTree> tree_;
  std::optional<LadderRunner> ladder_;
  std::optional<StopWatch> stop_watch_;
  std::optional<OrphanGuard> guard_;
  std::optional<EndWatch> guard_watch_;
  // When the guard kills the workers (SetDeadline).
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  GroupWorkers workers_;
  // What Suspend() has stopped.
  std::vector<SuspendedTree> suspended_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
