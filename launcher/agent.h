// One node's part in a job, from the first Join to the goodbye.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "launcher/agent_policy.h"
#include "launcher/environment.h"
#include "launcher/launch_config.h"
#include "launcher/log_layout.h"
#include "launcher/reserved_port.h"
#include "launcher/run_result.h"
#include "rendezvous/client/rendezvous_client.h"
#include "worker/console.h"
#include "worker/worker_group.h"

namespace muster::launcher {

// What an agent works with; all of it is made before the agent.
struct AgentParts {
  LaunchConfig config;
  // The environment that workers get, with torchrun's variables put over it.
  Environment environment;
  LogLayout logs;
  // This node, but for master_port, which each Join brings anew.
  rendezvous::NodeInfo node;
  // The port of the workers' store, when the user chose it; 0: a free one for every round.
  std::uint16_t fixed_master_port = 0;
};

// The loop code around AgentPolicy: hands it what happens and does what it asks. Lives on the
// loop's thread, which must be the main thread (see WorkerGroup). `io` and `console` must outlive
// it.
class Agent final : public rendezvous::RendezvousClient::Listener {
 public:
  using ClientFactory = std::function<std::unique_ptr<rendezvous::RendezvousClient>(
      rendezvous::RendezvousClient::Listener&)>;

  Agent(boost::asio::io_context& io, worker::Console& console, AgentParts parts,
        const ClientFactory& make_client);
  ~Agent() override;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Takes part in the job. `finished` is called once, from the loop, when no worker is left and the
  // rendezvous has heard the goodbye or cannot; the agent may be destroyed from there.
  void Run(std::function<void(const RunResult&)> finished);

  // A signal that asks the run to end came to this process (see AgentPolicy::OnSignal).
  void OnStopSignal(int signal);
  // A signal that is none of the agent's business: passed on to every worker.
  void PassOn(int signal);

 private:
  // RendezvousClient::Listener.
  void OnDirective(const rendezvous::Directive& directive) override;
  void OnTrouble(const std::string& trouble) override;
  void OnLost(const absl::Status& status) override;

  void Do(const Actions& actions);
  // One for each kind of Action.
  void Do(const JoinRound&);
  void Do(const StartWorkers& start);
  void Do(const StopWorkers& stop);
  void Do(const KillWorkers&);
  void Do(const ReportStarted& report);
  void Do(const ReportExited& report);
  void Do(const SayLeaving& leaving);
  void Do(const SayGoodbye& goodbye);
  void Do(const Finish&);
  void Do(const Tell& tell);

  rendezvous::JobSettings Settings() const;
  rendezvous::WorkerFailure ToReport(const worker::FailureRecord& record) const;
  void OnWorkersDone(const worker::GroupResult& result);

  boost::asio::io_context& io_;
  worker::Console& console_;
  const AgentParts parts_;

  AgentPolicy policy_;
  std::function<void(const RunResult&)> finished_;
  std::unique_ptr<rendezvous::RendezvousClient> client_;
  // Of the current round; held for as long as its workers may use it.
  std::optional<ReservedPort> master_port_;
  std::unique_ptr<worker::WorkerGroup> workers_;
};

}  // namespace muster::launcher
