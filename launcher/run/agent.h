// One node's part in a job, from the first Join to the goodbye.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "launcher/cli/launch_config.h"
#include "launcher/replay/agent_event.h"
#include "launcher/run/agent_core.h"
#include "launcher/run/hang_monitor.h"
#include "launcher/run/log_deliveries.h"
#include "launcher/run/rank_layout.h"
#include "launcher/run/round_evidence.h"
#include "launcher/run/run_info.h"
#include "launcher/run/workers_store.h"
#include "rendezvous/client/rendezvous_client.h"
#include "worker/group/health_check.h"
#include "worker/group/worker_group.h"
#include "worker/output/console.h"

namespace muster::launcher {

// What an agent works with, all made before the agent.
struct AgentParts {
  // Must outlive the agent.
  const LaunchConfig& config;
  // What the workers have in common.
  NodeBase base;
  LogLayout logs;
  // This node, except for the store's port, which is new in each Join.
  rendezvous::NodeInfo node;
  // Hears the workers' beats and watches for those that hang; null if it cannot. Must outlive the
  // agent.
  HangMonitor* hang = nullptr;
  // The rendezvous is served by this process.
  bool serves_rendezvous = false;
  // A second SIGTERM says nothing new (Signals::Options::in_slurm).
  bool sigterm_counts_once = false;
  // Whether the workers may use GPUs: then a failure is told with what the driver has reported.
  bool has_gpus = false;
};

// Hears how the run goes. Called from the loop; must not destroy the agent.
struct AgentObserver {
  std::function<void(RunState)> on_state;
  // The workers of this round are about to start; the state is kRunning.
  std::function<void(const rendezvous::Assignment&)> on_round;
  std::function<void(const AgentEvent&)> on_event;
};

// The loop code around AgentCore: hands it what happens and is the port on which it acts. Lives on
// the loop's thread, which must be the main thread (see WorkerGroup). `io`, `console` and `store`
// must outlive it. Its members are what the node has: the parts of the run, the client, the round's
// workers, and what is known of them.
class Agent final : public rendezvous::RendezvousClient::Listener, private AgentPort {
 public:
  using ClientFactory = std::function<std::unique_ptr<rendezvous::RendezvousClient>(
      rendezvous::RendezvousClient::Listener&)>;

  Agent(boost::asio::io_context& io, worker::Console& console, WorkersStore& store,
        AgentParts parts, AgentObserver observer, const ClientFactory& make_client);
  ~Agent() override;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Takes part in the job. `finished` is called once, from the loop, when no worker is left and the
  // rendezvous has heard the goodbye or cannot; the agent may be destroyed from there.
  void Run(std::function<void(const RunResult&)> finished);

  // A signal that asks the run to end came to this process (see AgentCore::OnSignal).
  void OnStopSignal(int signal) { core_.OnSignal(signal); }
  // See AgentCore::OnDrained.
  void OnDrained(const std::string& why) { core_.OnDrained(why); }
  // This program has started a child that is none of the workers' (WorkerGroup::ExcludeChild).
  void ExcludeChild(pid_t child);
  // A signal that does not concern the agent: it is passed on to every worker.
  void PassOn(int signal);

  // The workers, and what they have started, stand still until Resume(), those of later rounds as
  // well. They are not taken to hang meanwhile. The agent itself goes on.
  void Suspend();
  void Resume();

  // A worker's watchdog timer has expired. The writer to the watchdog's FIFO may have named any
  // process: one that does not belong to a worker is left alone.
  void KillOverdue(pid_t pid, const std::string& scope, int signal);

  // In which operations the workers of the round that began last are, or were when they died.
  std::vector<worker::RankFlight> Operations() const { return evidence_.Operations(); }

  // What the HangMonitor hears and finds.
  void OnBeat(const worker::Beat& beat);
  void OnFirstBeat(int rank) { TellWorker(AgentEventKind::kFirstBeat, rank, 0, ""); }
  void OnHang(int rank, const std::string& what);
  void OnLife(int rank) { EndRankAlert(rank, rendezvous::RankAlertKind::kSilent); }
  void OnEvidence(const worker::Evidence& evidence);
  // Tells the user and the event log in which operations the workers are, if they log them and one
  // is in one. Returns the sentence, or "".
  std::string TellOperations();

  // Workers that failed by themselves after the first one, in the round that ended last.
  const std::vector<rendezvous::WorkerFailure>& other_failures() const {
    return evidence_.other_failures();
  }

 private:
  // RendezvousClient::Listener.
  void OnDirective(const rendezvous::Directive& directive) override;
  void OnTrouble(const std::string& trouble) override;
  void OnOutOfTouch(const std::string& cause) override;
  void OnBackInTouch(rendezvous::Duration outage) override;
  void OnDeadline(std::optional<rendezvous::TimePoint> deadline) override;
  void OnFenced(const std::string& why) override { core_.OnFenced(why); }
  void OnLost(const absl::Status& status) override { core_.OnLost(status); }
  std::uint64_t LogBytesLost() const override;
  std::optional<rendezvous::TimePoint> FailedAt() const override { return evidence_.failed_at(); }
  rendezvous::Progress TakeProgress(bool all) override;

  // AgentPort.
  void CheckHealth() override;
  void Join(rendezvous::RoundId after, const std::string& unfit) override;
  void Say(rendezvous::Event event) override { client_->Say(std::move(event)); }
  void Leave(const std::string& reason) override;
  void StartWorkers(const rendezvous::Assignment& assignment) override;
  void StopWorkers(int signal) override;
  void Finish(const RunResult& result) override;
  void Tell(Level level, const std::string& sentence) override;
  void Note(const AgentEvent& event) override;

  rendezvous::JobSettings Settings() const;
  std::unique_ptr<worker::WorkerGroup> MakeWorkers(const std::string& logs, int nodes);
  void OnWorkersStarted(const std::string& logs, int nodes);
  void OnFirstFailure(const worker::FailureRecord& record);
  void OnStopped(int rank, pid_t pid, const std::string& what);
  void OnContinued(int rank, pid_t pid);
  void OnOutputLost(int rank, const std::string& what);
  // What is wrong with a rank of the current round, for those who look at the job.
  void SetRankAlert(int rank, rendezvous::RankAlertKind kind, const std::string& what);
  void EndRankAlert(int rank, rendezvous::RankAlertKind kind);
  // The workers are ending, so hangs no longer matter.
  void StopWatching();
  void OnWorkersDone(const worker::GroupResult& result);
  // Tells the observer about the current round, or about one of its workers.
  void TellRound(AgentEventKind kind, std::string cause = "");
  void TellWorker(AgentEventKind kind, int rank, int pid, std::string cause);

  boost::asio::io_context& io_;
  worker::Console& console_;
  WorkersStore& store_;
  const AgentParts parts_;
  const AgentObserver observer_;

  AgentCore core_;
  std::function<void(const RunResult&)> finished_;
  KeptLogs kept_logs_;
  std::unique_ptr<rendezvous::RendezvousClient> client_;
  LogDeliveries log_deliveries_;
  ProgressBook progress_;
  RoundEvidence evidence_;
  std::unique_ptr<worker::WorkerGroup> workers_;
  std::unique_ptr<worker::HealthCheck> health_check_;
  bool suspended_ = false;
  // Ranks that were stopped while it was.
  std::set<int> suspended_ranks_;
  std::uint64_t log_bytes_lost_ = 0;  // in the rounds before
};

}  // namespace muster::launcher
