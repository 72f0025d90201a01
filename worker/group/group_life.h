// How a group of workers reacts to events: the group without its processes, its timers and its
// loop.
//
//   kNew --Begin--> kRunning --a failure, Stop, leftovers of the last worker--> kStopping
//                      |                                                           |
//                      |              a ladder without grace                       | the grace
//                      +-----------------------------------------------------> kKilling is over
//                      |                                                           |
//                      +-- no worker is left, nor anything that came from one --> kDone <-- give-up
//
// The ladder is for whole trees. Its first signal goes to everything that came from the workers,
// the grace lasts until the last of that is gone, and SIGKILL goes to what is left then. What has
// not ended `give_up` after that is left behind. A second Stop() only changes the time of SIGKILL,
// and only to an earlier one.
//
// When no worker is running any more, but something that one has started is, processes that cannot
// be answering the first signal are reminded (leftovers.h): first kSettle after the last worker's
// end, as by then what died with it is gone and what had just been forked has called exec; then
// less and less often, as on a busy machine a process may take its time from fork to exec.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "worker/group/group_result.h"
#include "worker/stop_ladder.h"

namespace muster::worker {

// What the life asks its WorkerGroup to do, in order.

// Every worker has been started.
struct TellStarted {};
// The first worker failed, or is about to; nullopt: one could not be started. Answered with
// FailureTold().
struct TellFirstFailure {
  std::optional<std::size_t> worker;
};
// A worker failed by itself while the group was already stopping.
struct KeepFailure {
  std::size_t worker = 0;
};
// The group begins to stop: no more workers are started, and those that have not ended by now end
// as WorkerEnd::kStopped.
struct Halt {};
// Send `signal` to every process of the tree, and continue those that are stopped (SIGSTOP), which
// could not answer it otherwise.
struct SignalTree {
  int signal = 0;
};
// The grace is over: report what workers have left behind and KillTree is going to end.
struct NameLeftovers {};
// SIGKILL to every process of the tree.
struct KillTree {};
// Once more, for what was started while the others were killed.
struct KillStragglers {};
// No worker is left: is anything left that came from one? Answered with LeftoversSeen().
struct LookForLeftovers {};
// See RemindLeftovers() in leftovers.h. Answered with LeftoversReminded().
struct RemindOfSignal {
  int first_signal = 0;
};
// Report what SIGKILL has not ended within `after`, and leave it behind.
struct LeaveBehind {
  StopLadder::Duration after{};
};
// The group is done; GroupLife::end() says how. Always the last.
struct FinishGroup {};

using GroupAction = std::variant<TellStarted, TellFirstFailure, KeepFailure, Halt, SignalTree,
                                 NameLeftovers, KillTree, KillStragglers, LookForLeftovers,
                                 RemindOfSignal, LeaveBehind, FinishGroup>;
using GroupActions = std::vector<GroupAction>;

// How a worker that was started ended.
enum class WorkerEnd {
  kSucceeded,  // with exit code 0
  kFailed,     // in any other way
  kStopped,    // in any way, after the group had begun to stop
};

// Deterministic: time comes in. An answer may be given while the list that asked is still being
// worked off, as the asking action is always the last in its list. After FinishGroup nothing more
// is asked for.
class GroupLife {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kSettle{200};

  // `ladder` is for what is left after the first failure, or after the last worker's end.
  explicit GroupLife(const StopLadder& ladder) : ladder_(ladder) {}

  // Workers are about to be started.
  void Begin() { state_ = State::kRunning; }
  // Workers are numbered from 0 in the order in which they are started.
  void WorkerStarted() { ++running_; }
  // There are no more workers to start: all have been started, or those that were left when the
  // group began to stop have been dropped.
  GroupActions StartsOver();
  // A worker could not be started, and no more will be.
  GroupActions StartFailed();
  GroupActions WorkerExited(std::size_t worker, WorkerEnd end);
  // A worker is about to end of a SIGKILL of ours, which is a failure unless the group is stopping
  // already. Its exit is told as kStopped.
  GroupActions WorkerKilled(std::size_t worker);
  // The first failure has been reported; Stop() may have been called meanwhile.
  GroupActions FailureTold(TimePoint now);
  // Something that came from a worker has ended.
  GroupActions OrphanEnded() { return LookIfNoneRuns(); }
  GroupActions LeftoversSeen(bool any, TimePoint now);
  // `answering`: some are, or have not reached their exec yet, so they may have to be reminded
  // later.
  GroupActions LeftoversReminded(bool answering, TimePoint now);

  // Ends all workers, and what they have started, by `ladder`. A ladder that is already running is
  // kept, and only comes to SIGKILL sooner if the new one would.
  GroupActions Stop(const StopLadder& ladder, TimePoint now);

  // To be called at NextDeadline() or later; does nothing before then.
  GroupActions Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  bool is_new() const { return state_ == State::kNew; }
  // Workers that were started and whose end has not been heard of.
  int running() const { return running_; }
  // How the group has ended so far.
  GroupEnd end() const { return end_; }

 private:
  enum class State { kNew, kRunning, kStopping, kKilling, kDone };

  void BeginStop(const StopLadder& ladder, TimePoint now, GroupActions& actions);
  void HastenKill(const StopLadder& ladder, TimePoint now, GroupActions& actions);
  void Kill(TimePoint now, GroupActions& actions);
  GroupActions LookIfNoneRuns() const;
  GroupActions Finish();

  const StopLadder ladder_;
  State state_ = State::kNew;
  GroupEnd end_ = GroupEnd::kSucceeded;
  int running_ = 0;
  // No more workers are to be started.
  bool starts_over_ = false;
  // Of the ladder that runs.
  int first_signal_ = 0;
  StopLadder::Duration give_up_{};
  // The next rung: SIGKILL, then giving up.
  std::optional<TimePoint> rung_at_;
  // When leftovers are to be reminded next, and the pause before that.
  std::optional<TimePoint> remind_at_;
  std::chrono::milliseconds pause_{};
};

}  // namespace muster::worker
