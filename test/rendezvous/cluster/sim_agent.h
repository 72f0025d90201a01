// An agent process: the real AgentCore with the real Attendance and simulated workers, combined as
// in launcher/agent/agent.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent/agent_core.h"
#include "rendezvous/client/attendance.h"
#include "test/rendezvous/cluster/attendance_loop.h"
#include "test/rendezvous/cluster/mutations.h"
#include "test/rendezvous/cluster/process.h"
#include "test/rendezvous/cluster/sim_worker_group.h"
#include "test/rendezvous/cluster/worker_processes.h"
#include "worker/stop_ladder.h"

namespace muster::rendezvous {

class SimAgent {
 public:
  struct Options {
    int host = 0;
    Duration clock_offset{};
    JoinRequest request;  // except session, round and fitness
    worker::StopLadder ladder;
    launcher::Fitness::HealthCheck health_check{};
    const WorkerHabits& habits;
    const AgentMutations& mutations;
  };
  // `on_ended` is called when its run is over. It must not destroy this object.
  SimAgent(World world, Options options, std::function<void()> on_ended);
  ~SimAgent() { process_->Kill(); }
  SimAgent(const SimAgent&) = delete;
  SimAgent& operator=(const SimAgent&) = delete;

  void Begin() { Perform(core_.Begin()); }
  // SIGTERM from its user.
  void Terminate();
  // Its node is drained: it asks so many times whether it may leave.
  void Drain(int times);
  void Stop() { process_->Stop(); }
  void Continue() { process_->Continue(); }
  bool stopped() const { return process_->stopped(); }

  // Null if it has no workers.
  const std::shared_ptr<SimWorkerGroup>& group() const { return group_; }
  const std::string& node_id() const { return options_.request.node.node_id; }

 private:
  // Like RendezvousClient::Listener.
  void OnAction(const Attendance::Action& action);
  void OnDirective(const Directive& directive);
  void OnBackInTouch();
  void OnDeadline(std::optional<TimePoint> deadline);
  void OnFenced(const std::string& why);
  void OnLost(const absl::Status& status);

  TimePoint Now() const { return world_.scheduler.now() + options_.clock_offset; }
  void Perform(const launcher::CoreActions& actions);
  // One for each kind of CoreAction.
  void Do(const launcher::CheckHealth&);
  void Do(const launcher::DropHealthCheck&) { ++health_checks_; }
  void Do(const launcher::AskForPlace& ask);
  void Do(const launcher::GuardWorkers& guard);
  void Do(const launcher::StartWorkers& start);
  void Do(const launcher::StopWorkers& stop);
  void Do(const launcher::KillWorkers&);
  void Do(const launcher::ReportStarted& report);
  void Do(const launcher::ReportExited& report);
  void Do(const launcher::SayLeaving& leaving);
  void Do(const launcher::AskToLeave& ask);
  void Do(const launcher::SayGoodbye& goodbye);
  void Do(const launcher::Finish&);
  void Do(const launcher::Tell&) {}
  void Do(const launcher::RunState&) {}
  void Do(const launcher::AgentEvent&) {}
  void OnFirstFailure(const WorkerFailure& failure, bool lost_touch);
  void CheckResult();

  World world_;
  const Options options_;
  const std::function<void()> on_ended_;

  std::shared_ptr<Process> process_;
  launcher::AgentCore core_;
  std::shared_ptr<SimWorkerGroup> group_;
  int health_checks_ = 0;  // begun or dropped
  Incarnation incarnation_ = 0;
  Incarnation ran_in_ = 0;
  bool lost_ = false;    // the rendezvous
  bool killed_ = false;  // this group's workers, which may have been given up
  AttendanceLoop attendance_;
};

}  // namespace muster::rendezvous
