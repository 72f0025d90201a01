// The port of the real GroupLife, with simulated processes and a simulated guard, where
// worker/group/worker_group.cc has real ones.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/sim_guard.h"
#include "test/rendezvous/cluster/worker_processes.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/simulation/process.h"
#include "worker/group/group_life.h"
#include "worker/worker_spec.h"

namespace muster::rendezvous {

// Belongs to an agent's process, so nothing happens here while that is stopped. Held by shared_ptr;
// tasks waiting in the process hold it weakly.
class SimWorkerGroup final : public std::enable_shared_from_this<SimWorkerGroup>,
                             private worker::GroupPort {
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

  // Tells the life of an event.
  template <typename... Params, typename... Values>
  void Live(void (worker::GroupLife::*event)(Params...), const Values&... values) {
    const auto keep = shared_from_this();
    (life_.*event)(values..., Now());
    ArmTimer();
  }

  // GroupPort.
  void TellStarted() override { callbacks_.on_started(); }
  void TellFirstFailure(std::optional<std::size_t> worker, bool alike) override;
  void KeepFailure(std::size_t, bool) override {}
  void Halt() override;
  void SignalWorkers(int) override { processes_->Ask(); }
  void KillTree(bool) override { processes_->Kill(); }
  bool AnyLeft() override;
  Stopped StopLeftovers(worker::StopLadder::Duration grace) override;
  void NameLeftovers() override { world_.incidents.Count(Incident::kGraceOver); }
  void SayWaiting(worker::StopLadder::Duration) override {}
  void KeepLeftovers() override {}
  void LeaveBehind(worker::StopLadder::Duration) override {
    world_.incidents.Count(Incident::kLeftBehind);
  }
  void Finish() override;

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
