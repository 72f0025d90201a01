// The loop around the real GroupLife, with simulated processes and a simulated guard, where
// worker/group/worker_group.cc has real ones.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rendezvous/core/types.h"
#include "test/rendezvous/cluster/process.h"
#include "test/rendezvous/cluster/sim_guard.h"
#include "test/rendezvous/cluster/worker_processes.h"
#include "test/rendezvous/cluster/world.h"
#include "worker/group/group_life.h"
#include "worker/group/group_result.h"
#include "worker/stop_ladder.h"

namespace muster::rendezvous {

// Belongs to an agent's process, so nothing happens here while that is stopped. Held by shared_ptr;
// tasks waiting in the process hold it weakly.
class SimWorkerGroup : public std::enable_shared_from_this<SimWorkerGroup> {
 public:
  struct Callbacks {
    std::function<void()> on_started;
    // `lost_touch`: the guard killed the worker.
    std::function<void(const WorkerFailure&, bool lost_touch)> on_first_failure;
    // The last callback; may destroy the group.
    std::function<void(const worker::GroupResult&)> on_done;
  };

  SimWorkerGroup(World world, std::shared_ptr<Process> agent, Duration clock_offset,
                 worker::StopLadder ladder, std::shared_ptr<WorkerProcesses> processes,
                 std::shared_ptr<SimGuard> guard, Callbacks callbacks);

  void Start(int workers);
  void Stop(const worker::StopLadder& ladder);
  void SetDeadline(std::optional<TimePoint> deadline) { guard_->SetDeadline(deadline); }

  const std::shared_ptr<WorkerProcesses>& processes() const { return processes_; }
  const std::shared_ptr<SimGuard>& guard() const { return guard_; }

 private:
  struct Worker {
    std::optional<worker::ExitStatus> status;
    bool stopped_by_group = false;
  };

  TimePoint Now() const { return world_.scheduler.now() + clock_offset_; }
  void StartNext();
  void OnExit(std::size_t worker, const worker::ExitStatus& status);
  // Runs `task` in the agent's process if this group is still there.
  void InAgent(std::function<void(SimWorkerGroup&)> task);
  void InAgentAfter(Duration delay, std::function<void(SimWorkerGroup&)> task);
  void ArmTimer();

  void Do(const worker::GroupActions& actions);
  // One for each kind of GroupAction.
  void Do(const worker::TellStarted&);
  void Do(const worker::TellFirstFailure& failure);
  void Do(const worker::KeepFailure&) {}
  void Do(const worker::Halt&);
  void Do(const worker::SignalTree&) { processes_->Ask(); }
  void Do(const worker::NameLeftovers&);
  void Do(const worker::KillTree&) { processes_->Kill(); }
  void Do(const worker::KillStragglers&) { processes_->Kill(); }
  void Do(const worker::LookForLeftovers&);
  void Do(const worker::RemindOfSignal&);
  void Do(const worker::LeaveBehind&);
  void Do(const worker::FinishGroup&);

  World world_;
  const std::shared_ptr<Process> agent_;
  const Duration clock_offset_;
  const std::shared_ptr<WorkerProcesses> processes_;
  const std::shared_ptr<SimGuard> guard_;
  const Callbacks callbacks_;

  worker::GroupLife life_;
  std::vector<Worker> workers_;
  int to_be_started_ = 0;
  bool dropped_ = false;  // the workers still to be started
  std::optional<TimePoint> armed_for_;
};

}  // namespace muster::rendezvous
