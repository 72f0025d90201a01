// The workers of one node in one round: started together and ended together.
//
// The first worker that fails (an exit code other than 0, a signal, or it cannot be started) is
// reported at once through on_first_failure; then the others are ended by the stop ladder, and
// however they end no longer counts as a failure. A worker that exits with 0 while others run is
// fine, and what it has left behind may continue until the last worker has ended. GroupLife decides
// what is done when (group_life.h); here are the processes and the timer.
//
// The ladder is for whole trees: the first signal goes to every process that came from the workers,
// including those in sessions of their own, the grace lasts until the last of them is gone, and
// SIGKILL goes to all that are left then. So a shell that ends at SIGTERM does not take away the
// time that its python needs to save. When no worker is running any more, processes that cannot be
// answering the first signal are reminded (leftovers.h), so that the grace need not be waited out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "base/lifetime.h"
#include "worker/exit_status.h"
#include "worker/failure_record.h"
#include "worker/group/group_life.h"
#include "worker/group/group_result.h"
#include "worker/group/group_worker.h"
#include "worker/group/ladder_runner.h"
#include "worker/group/start_queue.h"
#include "worker/group/stop_watch.h"
#include "worker/group/worker_starter.h"
#include "worker/process/end_watch.h"
#include "worker/stop_ladder.h"
#include "worker/tree/cgroup.h"
#include "worker/tree/death_notice.h"
#include "worker/tree/oom.h"
#include "worker/tree/orphan_guard.h"
#include "worker/tree/worker_tree.h"
#include "worker/worker_spec.h"

namespace muster::worker {

class Console;

struct WorkerGroupOptions {
  // For the other workers after the first failure, and for what workers have left behind when all
  // of them have ended.
  StopLadder ladder;
  // Put the workers into a control group of their own where the system allows it (cgroup.h).
  bool use_cgroup = true;
  // Whom to tell when this program has died and nothing of the workers is left.
  std::optional<DeathNotice> death_notice{};
  // OrphanGuardOptions::file.
  std::string file_of_agent{};
};

// A worker that was started and has not ended yet.
struct RunningWorker {
  int rank = 0;
  pid_t pid = 0;
};

// All of them are called from the loop, never from inside a method of the group. May be empty.
struct WorkerGroupCallbacks {
  // At most once, before on_done and before the other workers are stopped.
  std::function<void(const FailureRecord&)> on_first_failure;
  // Exactly once after Start(): every worker is gone (or given up), and so is everything that came
  // from them, and their output is on its way. Only from within this callback may the group be
  // destroyed, and another be started.
  std::function<void(const GroupResult&)> on_done;
  // Once, when every worker has called exec; never if one could not be started, or the group was
  // stopped before then.
  std::function<void()> on_started;
  // A worker was stopped, and does nothing until it is continued: `what` is a phrase that follows
  // "rank 3": "was stopped by SIGSTOP". Only the worker itself is watched, not what it has started,
  // and a debugger that holds it does not count (stop_watch.h).
  std::function<void(int rank, pid_t pid, const std::string& what)> on_stopped;
  // It continues.
  std::function<void(int rank, pid_t pid)> on_continued;
  // A log file of this rank has begun to lose what it prints: `what` says which and why, "write
  // /logs/2/stderr.log: No space left on device". Once for each file.
  std::function<void(int rank, const std::string& what)> on_output_lost;
  // Something that stopped nothing, but that the user should know, one sentence: "rank 2: write
  // /logs/2/stderr.log: No space left on device; output is being lost" (for the first file only;
  // how much was lost is told at the end).
  std::function<void(const std::string&)> on_warning;
};

// Lives on the loop's thread, which must be the program's main thread: the kernel ends the workers
// (PR_SET_PDEATHSIG) when the thread that forked them ends. `io` and `console` must outlive the
// group. A group runs once, and only one at a time: while it runs, the program adopts the orphans
// of its workers (worker_tree.h).
class WorkerGroup {
 public:
  WorkerGroup(boost::asio::io_context& io, WorkerGroupOptions options, Console& console,
              WorkerGroupCallbacks callbacks);
  // Kills what is left of the workers and what came from them, and waits briefly for its end. No
  // callback runs.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Starts one process for each spec, in order, and returns when each has called exec (about 1 ms
  // each). If one cannot be started, the rest are not tried; on_first_failure follows from the
  // loop. If the system cannot create a process just now (fork: EAGAIN, ENOMEM), the rest are tried
  // again from the loop for two seconds before that counts as a failure. Once only; `specs` must
  // not be empty.
  void Start(std::vector<WorkerSpec> specs);

  // Ends all workers, and what they have started, by `ladder`. A ladder that is already running is
  // kept, and only comes to SIGKILL sooner if the new one would. No effect before Start() and after
  // on_done.
  void Stop(const StopLadder& ladder);

  // SIGKILL to all, now: for a second Ctrl-C.
  void StopNow() { Stop(StopLadder::Now()); }

  // Passes `signal` on to the process group of each running worker. It is not a request to stop.
  void ForwardSignal(int signal);

  // Sends `signal` to one process: a worker, or something that came from one. If its worker fails,
  // `reason` says why: "its watchdog timer 'step' expired". SIGKILL to a worker is its failure, and
  // is told (from the loop) before any other that it may cause, even if the worker takes long to
  // die. False, and no signal is sent, when `pid` has nothing to do with this group.
  bool KillFor(pid_t pid, int signal, const std::string& reason);

  // A child of this program that leads a session but does not belong to the workers, such as a
  // debugger started on one: it is left alone. To be called before control returns to the loop.
  void AddStranger(pid_t child);

  // When a worker with this rank last wrote something that we read, to stdout or stderr; nullopt
  // when it never did. A stream that it inherits from us is not seen (output.h), unless
  // OutputSpec::keep_tail is set.
  std::optional<std::chrono::steady_clock::time_point> LastOutput(int rank) const;

  // When this time comes, all workers, and what came from them, get SIGKILL, whatever happens to
  // this program meanwhile, unless the time has been moved by then; nullopt, as at first: never. To
  // be moved forward as long as the node is in touch with the rendezvous; cheap. May be called
  // before Start(). No worker is started after this time. A worker that is killed or not started
  // for this reason has FailureRecord::lost_touch.
  void SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline);

  // Whom WorkerGroupOptions::death_notice goes to is elsewhere from now on. To be called after
  // Start(); cheap.
  void MoveDeathNotice(const ServerAddress& to);

  // Workers that were started and have not ended yet.
  int running() const { return life_.running(); }
  std::vector<RunningWorker> RunningWorkers() const;
  // Bytes of their output that log files have not taken so far.
  std::uint64_t log_bytes_dropped() const;
  // Pids of the workers that were started, in the order of the specs.
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

  // Does what the life asks for, and calls it again when its deadline comes.
  void Do(const GroupActions& actions);
  void Do(const TellStarted&);
  void Do(const TellFirstFailure& failure);
  void Do(const KeepFailure& failure);
  void Do(const Halt&);
  void Do(const SignalTree& signal);
  void Do(const NameLeftovers&);
  void Do(const KillTree&);
  void Do(const KillStragglers&);
  void Do(const LookForLeftovers&);
  void Do(const RemindOfSignal& reminder);
  void Do(const LeaveBehind& given_up);
  void Do(const FinishGroup&);
  void AwaitDeadline();

  FailureRecord RecordFailure(const GroupWorker& worker);
  // All have ended, or have been given up.
  void CompleteResult();
  void Warn(const std::string& sentence) const;

  boost::asio::io_context& io_;
  const WorkerGroupOptions options_;
  Console& console_;
  const WorkerGroupCallbacks callbacks_;

  GroupLife life_;
  // For the life's deadline; and the deadline it is set to.
  boost::asio::steady_timer timer_;
  std::optional<GroupLife::TimePoint> awaited_;
  StartQueue starts_;
  // The record of the worker that could not be started.
  std::optional<FailureRecord> start_failure_;
  GroupResult result_;  // as far as it is known
  bool log_loss_told_ = false;
  // While the workers run. The guard ends what is left of them when the agent is killed.
  std::optional<OomWatch> oom_;
  std::optional<WorkerCgroup> cgroup_;
  std::optional<WorkerStarter> starter_;
  std::optional<WorkerTree> tree_;
  std::optional<LadderRunner> ladder_;
  std::optional<StopWatch> stop_watch_;
  std::optional<OrphanGuard> guard_;
  std::optional<EndWatch> guard_watch_;
  // When the guard is to kill the workers (SetDeadline).
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  GroupWorkers workers_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
