// One node's part in a job, from the first Join to the goodbye.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "launcher/agent/agent_core.h"
#include "launcher/agent/hang_monitor.h"
#include "launcher/agent/kept_logs.h"
#include "launcher/agent/log_deliveries.h"
#include "launcher/agent/log_layout.h"
#include "launcher/agent/progress_book.h"
#include "launcher/agent/rank_layout.h"
#include "launcher/agent/workers_store.h"
#include "launcher/config/launch_config.h"
#include "launcher/environment.h"
#include "launcher/machine/kernel_log.h"
#include "launcher/registry/run_state.h"
#include "launcher/report/agent_event.h"
#include "launcher/report/run_result.h"
#include "rendezvous/client/rendezvous_client.h"
#include "worker/flight/flight_file.h"
#include "worker/group/health_check.h"
#include "worker/group/worker_group.h"
#include "worker/output/console.h"

namespace muster::launcher {

// What an agent works with, all made before the agent.
struct AgentParts {
  LaunchConfig config;
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

// The loop code around AgentCore: hands it what happens and does what it asks. Lives on the
// loop's thread, which must be the main thread (see WorkerGroup). `io`, `console` and `store` must
// outlive it.
class Agent final : public rendezvous::RendezvousClient::Listener {
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

  // A signal that asks the run to end came to this process (see AgentPolicy::OnSignal).
  void OnStopSignal(int signal);
  // See AgentCore::OnDrained.
  void OnDrained(const std::string& why);
  // This program has started a child that is none of the workers' (WorkerGroup::AddStranger).
  void AddStranger(pid_t child);
  // A signal that does not concern the agent: it is passed on to every worker.
  void PassOn(int signal);

  // A worker's watchdog timer has expired. The writer to the watchdog's FIFO may have named any
  // process: one that does not belong to a worker is left alone.
  void KillOverdue(pid_t pid, const std::string& scope, int signal);

  // In which operations the workers of the round that began last are, or were when they died.
  std::vector<worker::RankFlight> Operations() const;

  // What the HangMonitor hears and finds.
  void OnBeat(const worker::Beat& beat);
  void OnFirstBeat(int rank);
  void OnHang(int rank, const std::string& what);
  void OnLife(int rank);
  void OnEvidence(const worker::Evidence& evidence);
  // Tells the user and the event log in which operations the workers are, if they log them and one
  // is in one. Returns the sentence, or "".
  std::string TellOperations();

  // Workers that failed by themselves after the first one, in the round that ended last.
  const std::vector<rendezvous::WorkerFailure>& other_failures() const { return other_failures_; }

 private:
  // RendezvousClient::Listener.
  void OnDirective(const rendezvous::Directive& directive) override;
  void OnTrouble(const std::string& trouble) override;
  void OnOutOfTouch(const std::string& cause) override;
  void OnBackInTouch(rendezvous::Duration outage) override;
  void OnDeadline(std::optional<rendezvous::TimePoint> deadline) override;
  void OnFenced(const std::string& why) override;
  void OnLost(const absl::Status& status) override;
  std::uint64_t LogBytesLost() const override;
  std::optional<rendezvous::TimePoint> FailedAt() const override { return failed_at_; }
  rendezvous::Progress TakeProgress(bool all) override;

  void Do(const CoreActions& actions);
  // One for each kind of CoreAction.
  void Do(const CheckHealth&);
  void Do(const DropHealthCheck&);
  void Do(const AskForPlace& ask);
  void Do(const GuardWorkers& guard);
  void Do(const StartWorkers& start);
  void Do(const StopWorkers& stop);
  void Do(const KillWorkers&);
  void Do(const ReportStarted& report);
  void Do(const ReportExited& report);
  void Do(const SayLeaving& leaving);
  void Do(const AskToLeave& ask);
  void Do(const SayGoodbye& goodbye);
  void Do(const Finish&);
  void Do(const Tell& tell);
  void Do(const RunState& state);
  void Do(const AgentEvent& event);

  rendezvous::JobSettings Settings() const;
  rendezvous::WorkerFailure ToReport(const worker::FailureRecord& record) const;
  void OnWorkersStarted(const std::string& logs, int nodes);
  void OnFirstFailure(const worker::FailureRecord& record);
  // A worker has moved since the operations were told last.
  bool OperationsAreNews() const;
  void OnOutputLost(int rank, const std::string& what);
  // What is wrong with a rank of the current round, for those who look at the job.
  void SetTrouble(int rank, rendezvous::TroubleKind kind, const std::string& what);
  void EndTrouble(int rank, rendezvous::TroubleKind kind);
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
  std::optional<worker::FlightFile> flights_;  // of the round that began last, from `first_rank_`
  int first_rank_ = 0;
  std::int64_t told_operations_at_ = 0;  // in this round; as FlightRecord has times
  std::unique_ptr<worker::WorkerGroup> workers_;
  std::unique_ptr<worker::HealthCheck> health_check_;
  std::vector<rendezvous::WorkerFailure> other_failures_;
  std::optional<rendezvous::TimePoint> failed_at_;  // the first worker of the round to fail
  std::uint64_t log_bytes_lost_ = 0;                // in the rounds before
  // From the start of this round's workers on; nullopt without GPUs.
  std::optional<KernelLog> kernel_log_;
};

}  // namespace muster::launcher
