// An agent process: the real AgentCore with the real AgentSession and simulated workers. It is the
// core's port, as launcher/run/agent.cc is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "launcher/run/agent_core.h"
#include "rendezvous/client/agent_session.h"
#include "test/rendezvous/cluster/agent_session_loop.h"
#include "test/rendezvous/cluster/mutations.h"
#include "test/rendezvous/cluster/sim_worker_group.h"
#include "test/rendezvous/cluster/worker_processes.h"
#include "test/rendezvous/simulation/process.h"
#include "worker/worker_spec.h"

namespace muster::rendezvous {

class SimAgent final : private launcher::AgentPort {
 public:
  struct Options {
    int host = 0;
    Duration clock_offset{};
    JoinRequest request;  // except session, round and fitness
    worker::StopLadder ladder;
    bool checks_health = false;
    const WorkerHabits& habits;
    const AgentMutations& mutations;
  };
  // `on_ended` is called when its run is over. It must not destroy this object.
  SimAgent(World world, Options options, std::function<void()> on_ended);
  ~SimAgent() override { process_->Kill(); }
  SimAgent(const SimAgent&) = delete;
  SimAgent& operator=(const SimAgent&) = delete;

  void Begin() { core_.Begin(); }
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
  void OnAction(const AgentSession::Action& action);
  void OnDirective(const Directive& directive);
  void OnBackInTouch();
  void OnDeadline(std::optional<TimePoint> deadline);
  void OnFenced(const std::string& why);
  void OnLost(const absl::Status& status);

  TimePoint Now() const { return world_.scheduler.now() + options_.clock_offset; }
  // AgentPort.
  void CheckHealth() override;
  void Join(RoundId after, const std::string& unfit) override;
  void Say(Event event) override { agent_session_.Say(std::move(event)); }
  void Leave(const std::string& reason) override { agent_session_.Leave(reason); }
  void StartWorkers(const Assignment& assignment) override;
  void StopWorkers(int signal) override;
  void Finish(const launcher::RunResult& result) override;
  void Tell(Level, const std::string&) override {}
  void Note(const launcher::AgentEvent&) override {}

  void OnFirstFailure(const WorkerFailure& failure, bool lost_touch);
  void CheckResult(const launcher::RunResult& result) const;

  World world_;
  const Options options_;
  const std::function<void()> on_ended_;

  std::shared_ptr<Process> process_;
  launcher::AgentCore core_;
  std::shared_ptr<SimWorkerGroup> group_;
  int health_checks_ = 0;  // begun
  Incarnation incarnation_ = 0;
  Incarnation ran_in_ = 0;
  bool lost_ = false;    // the rendezvous
  bool killed_ = false;  // this group's workers, which may have been given up
  AgentSessionLoop agent_session_;
};

}  // namespace muster::rendezvous
