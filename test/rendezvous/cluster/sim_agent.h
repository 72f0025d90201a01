// One agent process: the real AgentPolicy between a client and fake workers, as launcher/agent.cc
// puts them together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent_policy.h"
#include "test/rendezvous/cluster/fake_workers.h"
#include "test/rendezvous/cluster/process.h"
#include "test/rendezvous/cluster/sim_client.h"

namespace muster::rendezvous {

class SimAgent final : public SimClient::Listener {
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
  ~SimAgent() override { process_->Kill(); }

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
  // SimClient::Listener.
  void OnDirective(const Directive& directive) override;
  void OnDeadline(std::optional<TimePoint> deadline) override;
  void OnFenced(const std::string& why) override;
  void OnLost(const std::string& why) override;

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
  std::optional<TimePoint> deadline_;  // the guard's
  bool lost_ = false;                  // the rendezvous
  SimClient client_;
};

}  // namespace muster::rendezvous
