// One agent process: the real AgentPolicy between the real Attendance and fake workers, as
// launcher/agent.cc puts them together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent_policy.h"
#include "rendezvous/client/attendance.h"
#include "test/rendezvous/cluster/attendance_loop.h"
#include "test/rendezvous/cluster/fake_workers.h"
#include "test/rendezvous/cluster/process.h"

namespace muster::rendezvous {

class SimAgent {
 public:
  struct Options {
    int host = 0;
    Duration clock_offset{};
    JoinRequest request;  // but for session and round
    const WorkerHabits& habits;
    const AgentMutations& mutations;
  };
  // `guard` outlives it; `on_ended` is called when its run is over, from the scheduler.
  SimAgent(World world, Options options, FakeGuard& guard, std::function<void()> on_ended);
  ~SimAgent() { process_->Kill(); }
  SimAgent(const SimAgent&) = delete;
  SimAgent& operator=(const SimAgent&) = delete;

  void Begin();
  // SIGTERM from its user.
  void Terminate();
  void Stop() { process_->Stop(); }
  void Continue() { process_->Continue(); }
  bool stopped() const { return process_->stopped(); }

  // The workers that it has started last; null when there were none.
  const std::shared_ptr<FakeWorkers>& workers() const { return workers_; }
  const std::string& node_id() const { return options_.request.node.node_id; }

 private:
  // As RendezvousClient::Listener.
  void OnAction(const Attendance::Action& action);
  void OnDirective(const Directive& directive);
  void OnDeadline(std::optional<TimePoint> deadline);
  void OnFenced(const std::string& why);
  void OnLost(const absl::Status& status);

  void Perform(const launcher::Actions& actions);
  void StartWorkers(const Assignment& assignment);
  void OnLostTouch(const Assignment& assignment);
  void CheckResult();

  World world_;
  const Options options_;
  FakeGuard& guard_;
  const std::function<void()> on_ended_;

  std::shared_ptr<Process> process_;
  launcher::AgentPolicy policy_;
  std::shared_ptr<FakeWorkers> workers_;
  Incarnation incarnation_ = 0;
  bool lost_ = false;  // the rendezvous
  AttendanceLoop attendance_;
};

}  // namespace muster::rendezvous
