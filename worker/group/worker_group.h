// The workers of one node in one round: started together, ended together.
//
// The first worker that fails (an exit code other than 0, a signal, or it cannot be started) is
// told at once through on_first_failure; then the stop ladder runs over the others, and how they
// end is no failure any more. A worker that exits with 0 while others run is fine, and what it has
// left behind may go on until the last worker has ended. What is done when is GroupLife's to say
// (group_life.h); here are the processes and the timer.
//
// The ladder is for whole trees: the first signal goes to every process that came from the workers,
// also to those in sessions of their own, the grace lasts until the last of them is gone, and
// SIGKILL goes to all that are left then. So a shell that ends at SIGTERM does not take away the
// time that its python needs to save. When no worker runs any more, what cannot be answering the
// first signal is reminded (leftovers.h), so that nobody has to wait for the grace to end.
#pragma once

#include <chrono>
#include <cstddef>
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
  // What the other workers get after the first failure, and what workers have left behind when all
  // of them have ended.
  StopLadder ladder;
  // Put the workers into a control group of their own where the system lets us (cgroup.h).
  bool use_cgroup = true;
  // Who is told when this program has died and nothing of the workers is left.
  std::optional<DeathNotice> death_notice{};
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
  // from them, and their output is on its way. The group may be destroyed from within this one
  // only, and another be started.
  std::function<void(const GroupResult&)> on_done;
  // Once, when every worker has called exec; never when one could not be started, or the group was
  // stopped before.
  std::function<void()> on_started;
  // A worker was stopped, and does nothing until somebody has it go on: `what` is a phrase that
  // follows "rank 3": "was stopped by SIGSTOP". It is the worker alone that is watched, not what it
  // has started, and a debugger that holds it does not count (stop_watch.h).
  std::function<void(int rank, pid_t pid, const std::string& what)> on_stopped;
  // It goes on.
  std::function<void(int rank, pid_t pid)> on_continued;
  // Something that did not stop anything but that the user should see, one sentence:
  // "rank 2: write /logs/2/stderr.log: No space left on device; output is being lost" (for the
  // first file only; how much was lost is told at the end).
  std::function<void(const std::string&)> on_warning;
};

// Lives on the loop's thread, which must be the program's main thread: the kernel ends the workers
// (PR_SET_PDEATHSIG) when the thread that forked them ends. `io` and `console` must outlive the
// group. One group runs once, and one at a time: while it runs, it has the program adopt the
// orphans of its workers (worker_tree.h).
class WorkerGroup {
 public:
  WorkerGroup(boost::asio::io_context& io, WorkerGroupOptions options, Console& console,
              WorkerGroupCallbacks callbacks);
  // Kills what is left of the workers and what came from them, and waits for it briefly. No
  // callback runs.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Starts one process for each spec, in order, and returns when each has called exec (about 1 ms
  // each). At the first that cannot be started the rest are not tried; on_first_failure follows
  // from the loop. Where the system just has no process to give (fork: EAGAIN, ENOMEM), the rest
  // are tried again from the loop, for two seconds, before that is a failure. Once only; `specs`
  // must not be empty.
  void Start(std::vector<WorkerSpec> specs);

  // Ends all workers, and what they have started, by `ladder`. When a ladder runs already it is
  // kept, and only comes to SIGKILL sooner where the new one would. No effect before Start() and
  // after on_done.
  void Stop(const StopLadder& ladder);

  // SIGKILL to all, now: for a second Ctrl-C.
  void StopNow() { Stop(StopLadder::Now()); }

  // Passes `signal` on to the process group of each running worker. It is no request to stop.
  void ForwardSignal(int signal);

  // Sends `signal` to one process: a worker, or something that came from one. If its worker fails,
  // `reason` says why: "its watchdog timer 'step' expired". False, and no signal is sent, when
  // `pid` is nothing of this group's.
  bool KillFor(pid_t pid, int signal, const std::string& reason);

  // A child of this program that leads a session but is none of the workers', a debugger that was
  // started on one: it is left alone. To be told before the loop goes on.
  void AddStranger(pid_t child);

  // When a worker with this rank last wrote something that we read, to stdout or stderr; nothing
  // when it never did. A stream that it inherits from us is not seen (output.h), unless
  // OutputSpec::keep_tail is set.
  std::optional<std::chrono::steady_clock::time_point> LastOutput(int rank) const;

  // SIGKILL to all workers, and what came from them, when this time comes, whatever becomes of this
  // program meanwhile, unless it has been moved by then; nullopt, as at first: never. To be moved
  // on as long as the node is in touch with the rendezvous; cheap. May be called before Start().
  // No worker is started after it. What ends like that, or cannot be started, is
  // FailureRecord::lost_touch.
  void SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline);

  // Workers that were started and have not ended yet.
  int running() const { return life_.running(); }
  std::vector<RunningWorker> RunningWorkers() const;
  // Pids of the workers that were started, in the order of the specs.
  std::vector<pid_t> pids() const;

 private:
  absl::Status StartWorker(const WorkerSpec& spec);
  void StartGuard(std::size_t capacity);
  void WatchStops();
  GroupWorker* FindByPid(pid_t pid) const;
  void OnExit(std::size_t worker, const ExitStatus& status);
  void OnLogLoss(int rank, const std::string& what);

  // Does what the life asks for, and has it looked at again when its deadline comes.
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
  // All have ended, or are given up.
  void CompleteResult();
  void Warn(const std::string& sentence) const;

  boost::asio::io_context& io_;
  const WorkerGroupOptions options_;
  Console& console_;
  const WorkerGroupCallbacks callbacks_;

  GroupLife life_;
  // For the life's deadline, and the one that it is set to.
  boost::asio::steady_timer timer_;
  std::optional<GroupLife::TimePoint> awaited_;
  StartQueue starts_;
  // Of the worker that could not be started.
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
  // When the guard is to kill the workers (SetDeadline).
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  GroupWorkers workers_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
