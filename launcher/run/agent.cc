#include "launcher/run/agent.h"

#include <utility>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "launcher/cli/program.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {
namespace {

// How long the end of a run waits for those who read what its workers have printed.
constexpr std::chrono::seconds kLogLimit(5);

// For the guard of the workers.
std::optional<worker::DeathNotice> DeathNoticeOf(const rendezvous::RendezvousClient& client) {
  const auto notice = client.death_notice();
  if (!notice) return std::nullopt;
  return worker::DeathNotice{{notice->to.data(), notice->to.size()}, notice->text};
}

}  // namespace

Agent::Agent(boost::asio::io_context& io, worker::Console& console, WorkersStore& store,
             AgentParts parts, AgentObserver observer, const ClientFactory& make_client)
    : io_(io),
      console_(console),
      store_(store),
      parts_(std::move(parts)),
      observer_(std::move(observer)),
      core_(*this, {.checks_health = !parts_.config.health.command.empty(),
                    .grace = parts_.config.shutdown_timeout,
                    .sigterm_counts_once = parts_.sigterm_counts_once,
                    .min_nodes = parts_.config.min_nodes,
                    .max_nodes = parts_.config.max_nodes,
                    .serves_rendezvous = parts_.serves_rendezvous}),
      client_(make_client(*this)),
      log_deliveries_(io, parts_.node.host),
      evidence_(parts_) {}

Agent::~Agent() = default;

void Agent::Run(std::function<void(const RunResult&)> finished) {
  finished_ = std::move(finished);
  core_.Begin();
}

void Agent::ExcludeChild(pid_t child) {
  if (workers_ != nullptr) workers_->ExcludeChild(child);
}

void Agent::PassOn(int signal) {
  if (workers_ != nullptr) workers_->ForwardSignal(signal);
}

void Agent::KillOverdue(pid_t pid, const std::string& scope, int signal) {
  const std::string reason = absl::StrCat("its watchdog timer '", scope, "' expired");
  if (workers_ == nullptr || !workers_->KillFor(pid, signal, reason)) {
    spdlog::warn("watchdog: timer '{}' names process {}, which belongs to no worker; ignored",
                 scope, pid);
  }
}

void Agent::OnBeat(const worker::Beat& beat) {
  if (progress_.OnBeat(beat, std::chrono::steady_clock::now())) client_->ProgressMade();
}

rendezvous::Progress Agent::TakeProgress(bool all) {
  if (parts_.hang != nullptr) parts_.hang->LookAgain();
  return progress_.Take(all, std::chrono::steady_clock::now());
}

void Agent::OnHang(int rank, const std::string& what) {
  spdlog::warn("rank {} {}", rank, what);
  TellWorker(AgentEventKind::kHang, rank, 0, what);
  SetRankAlert(rank, rendezvous::RankAlertKind::kSilent, what);
}

void Agent::OnOutputLost(int rank, const std::string& what) {
  // "write FILE: CAUSE"; of a long phrase the end is cut off on the way.
  const std::size_t colon = what.rfind(": ");
  const std::string cause =
      absl::StrCat("has lost output: ", what.substr(colon + 2), " (", what.substr(0, colon), ")");
  TellWorker(AgentEventKind::kOutputLost, rank, 0, cause);
  // There may be room again, but what was lost is not there.
  SetRankAlert(rank, rendezvous::RankAlertKind::kOutputLost, cause);
}

void Agent::SetRankAlert(int rank, rendezvous::RankAlertKind kind, const std::string& what) {
  if (progress_.SetRankAlert(rank, kind, what, std::chrono::steady_clock::now())) {
    client_->ProgressMade();
  }
}

void Agent::EndRankAlert(int rank, rendezvous::RankAlertKind kind) {
  if (progress_.EndRankAlert(rank, kind)) client_->ProgressMade();
}

void Agent::OnEvidence(const worker::Evidence& evidence) {
  const std::string& missing = evidence.without_stacks;
  const std::string what = missing.empty() ? absl::StrCat("stack traces of rank ", evidence.rank)
                                           : absl::StrCat("no stack traces of rank ", evidence.rank,
                                                          ": ", missing, "; what else it did");
  if (evidence.file.empty()) {
    // Without a log directory this is the only place for it.
    spdlog::warn("{}{}{}:\n{}", what,
                 evidence.problem.empty() ? "" : ", which could not be written: ", evidence.problem,
                 evidence.text);
  } else {
    spdlog::warn("{}: {}", what, evidence.file);
  }
  TellWorker(AgentEventKind::kEvidence, evidence.rank, 0, evidence.file);
}

std::string Agent::TellOperations() {
  const std::string sentence = evidence_.TakeOperations();
  if (sentence.empty()) return "";
  spdlog::warn("{}", sentence);
  TellRound(AgentEventKind::kOperations, sentence);
  return sentence;
}

void Agent::TellWorker(AgentEventKind kind, int rank, int pid, std::string cause) {
  observer_.on_event(
      {.kind = kind, .round = core_.round(), .rank = rank, .pid = pid, .cause = std::move(cause)});
}

void Agent::TellRound(AgentEventKind kind, std::string cause) {
  observer_.on_event({.kind = kind, .round = core_.round(), .cause = std::move(cause)});
}

void Agent::OnDirective(const rendezvous::Directive& directive) {
  if (const auto* wanted = std::get_if<rendezvous::LogWanted>(&directive)) {
    return log_deliveries_.Begin(*wanted, kept_logs_, *client_);
  }
  // Why ranks of other nodes have waited in vain may be seen only here.
  if (std::holds_alternative<rendezvous::Stop>(directive) && workers_ != nullptr &&
      evidence_.has_stalled()) {
    TellOperations();
  }
  core_.OnDirective(directive, std::chrono::steady_clock::now());
}

void Agent::OnTrouble(const std::string& trouble) {
  spdlog::warn("{}", trouble);
}

void Agent::OnOutOfTouch(const std::string& cause) {
  spdlog::warn("{}; reconnecting for up to {}", cause,
               base::Seconds(parts_.config.timeouts.reconnect));
  TellRound(AgentEventKind::kOutOfTouch, cause);
}

void Agent::OnBackInTouch(rendezvous::Duration outage) {
  // Another daemon may lead now. The workers' notice is for the session that they were started
  // in, and the session in it stays the same as long as they run. First of all, as from now on we
  // may die.
  const auto notice = DeathNoticeOf(*client_);
  if (workers_ != nullptr && notice) workers_->MoveDeathNotice(notice->to);
  const std::string after = base::Seconds(outage);
  spdlog::warn("reconnected to the rendezvous after {}", after);
  TellRound(AgentEventKind::kBackInTouch, after);
}

void Agent::OnDeadline(std::optional<rendezvous::TimePoint> deadline) {
  core_.OnDeadline(deadline);
  if (workers_ != nullptr) workers_->SetDeadline(deadline);
}

void Agent::CheckHealth() {
  health_check_ = std::make_unique<worker::HealthCheck>(
      io_, worker::HealthCheckOptions{.command = parts_.config.health.command,
                                      .timeout = parts_.config.health.timeout,
                                      .env = ToBlock(parts_.base.environment)});
  health_check_->Start([this](const absl::Status& status) {
    // Gone, so that nothing of it is left when workers start.
    health_check_.reset();
    core_.OnHealth(status);
  });
}

void Agent::Join(rendezvous::RoundId after, const std::string& unfit) {
  const absl::StatusOr<std::uint16_t> port = store_.Prepare();
  if (!port.ok()) return core_.OnCannotStart(port.status());
  rendezvous::NodeInfo node = parts_.node;
  node.master_port = *port;
  node.serves_store = parts_.config.worker_store != WorkerStore::kWorker;
  client_->Join({.run_id = parts_.config.run_id,
                 .settings = Settings(),
                 .node = std::move(node),
                 .after = after.number,
                 .ran_in = after.incarnation,
                 .unfit = unfit});
}

void Agent::StartWorkers(const rendezvous::Assignment& assignment) {
  const int nproc = parts_.config.nproc_per_node;
  absl::StatusOr<AttemptLogs> logs =
      parts_.logs.BeginAttempt(assignment.restart_count, assignment.round, nproc);
  if (!logs.ok()) return core_.OnCannotStart(logs.status());
  spdlog::info("round {}: group rank {} of {}, ranks {} to {} of {}, master {}:{}",
               assignment.round, assignment.group_rank, assignment.group_world_size,
               assignment.base_rank, assignment.base_rank + nproc - 1, assignment.world_size,
               assignment.master_addr, assignment.master_port);
  const absl::StatusOr<rendezvous::Endpoint> store = store_.BeginRound(assignment);
  if (!store.ok()) return core_.OnCannotStart(store.status());

  evidence_.Begin(assignment.base_rank, *logs);
  progress_.Begin(assignment.id(), assignment.base_rank, nproc);
  suspended_ranks_.clear();
  observer_.on_round(assignment);

  workers_ = MakeWorkers(logs->directory, assignment.group_world_size);
  workers_->SetDeadline(core_.deadline());
  rendezvous::Assignment as_seen_here = assignment;
  as_seen_here.master_addr = store->host;
  as_seen_here.master_port = store->port;
  std::vector<worker::WorkerSpec> specs =
      LayOutRanks(parts_.config, as_seen_here, parts_.base, *logs);
  kept_logs_.BeginRound(assignment.id(), specs);
  log_deliveries_.OnRoundBegun(kept_logs_, *client_);
  workers_->Start(std::move(specs));
}

std::unique_ptr<worker::WorkerGroup> Agent::MakeWorkers(const std::string& logs, int nodes) {
  const LaunchConfig& config = parts_.config;
  return std::make_unique<worker::WorkerGroup>(
      io_,
      worker::WorkerGroupOptions{
          .ladder = {.first_signal = SIGTERM, .grace = config.shutdown_timeout},
          .leftovers = config.leftovers,
          .death_notice = DeathNoticeOf(*client_),
          .file_of_agent = parts_.hang == nullptr ? "" : parts_.hang->socket_path(),
          .may_be_end_of_all =
              [this](const auto& status) { return evidence_.MayBeEndOfAll(status); },
          // One that waits for others gives no sign of life.
          .ends_together = IsRunPath(config.program) && config.hang.timeout.count() == 0},
      console_,
      worker::WorkerGroupCallbacks{
          .on_first_failure = [this](const auto& record) { OnFirstFailure(record); },
          .on_done = [this](const auto& result) { OnWorkersDone(result); },
          .on_started = [this, logs, nodes] { OnWorkersStarted(logs, nodes); },
          .on_stopped = [this](int rank, pid_t pid,
                               const auto& what) { OnStopped(rank, pid, what); },
          .on_continued = [this](int rank, pid_t pid) { OnContinued(rank, pid); },
          .on_output_lost = [this](int rank, const auto& what) { OnOutputLost(rank, what); },
          .on_warning = [](const auto& sentence) { spdlog::warn("{}", sentence); }});
}

void Agent::OnStopped(int rank, pid_t pid, const std::string& what) {
  // What Ctrl-Z means is said once.
  if (suspended_) {
    suspended_ranks_.insert(rank);
  } else {
    spdlog::warn("rank {} (pid {}) {}", rank, pid, what);
  }
  TellWorker(AgentEventKind::kWorkerStopped, rank, pid, what);
  SetRankAlert(rank, rendezvous::RankAlertKind::kStopped, what);
}

void Agent::OnContinued(int rank, pid_t pid) {
  if (suspended_ranks_.erase(rank) == 0) {
    spdlog::warn("rank {} (pid {}) was continued", rank, pid);
  }
  TellWorker(AgentEventKind::kWorkerContinued, rank, pid, "");
  EndRankAlert(rank, rendezvous::RankAlertKind::kStopped);
}

void Agent::OnWorkersStarted(const std::string& logs, int nodes) {
  if (parts_.hang != nullptr) parts_.hang->BeginRound(*workers_, logs, nodes);
  if (suspended_) workers_->Suspend();
  core_.OnWorkersStarted();
}

void Agent::Suspend() {
  suspended_ = true;
  if (parts_.hang != nullptr) parts_.hang->Suspend();
  if (workers_ != nullptr) workers_->Suspend();
}

void Agent::Resume() {
  suspended_ = false;
  if (workers_ != nullptr) workers_->Resume();
  if (parts_.hang != nullptr) parts_.hang->Resume();
}

void Agent::OnFirstFailure(const worker::FailureRecord& record) {
  StopWatching();
  if (record.lost_touch) return core_.OnLostTouch();
  // The others still run.
  const rendezvous::WorkerFailure failure = evidence_.FirstFailure(record);
  core_.OnFirstFailure(failure);
  if (failure.operations.empty()) return;
  TellRound(AgentEventKind::kOperations, failure.operations);
  // Of a hang it was said already, and the report says it again.
  if (evidence_.has_moved()) spdlog::warn("{}", failure.operations);
}

void Agent::StopWatching() {
  if (parts_.hang != nullptr) parts_.hang->EndRound();
}

void Agent::OnWorkersDone(const worker::GroupResult& result) {
  progress_.Clear();
  evidence_.AddOthers(result.other_failures);
  StopWatching();
  log_bytes_lost_ += result.log_bytes_dropped;
  workers_.reset();
  kept_logs_.EndRound();
  core_.OnWorkersGone(result);
}

void Agent::StopWorkers(int signal) {
  if (workers_ == nullptr) return;
  StopWatching();
  workers_->Stop(signal == SIGKILL ? worker::StopLadder::Now()
                                   : worker::StopLadder{.first_signal = signal,
                                                        .grace = parts_.config.shutdown_timeout});
}

std::uint64_t Agent::LogBytesLost() const {
  return log_bytes_lost_ + (workers_ == nullptr ? 0 : workers_->log_bytes_dropped());
}

void Agent::Leave(const std::string& reason) {
  health_check_.reset();
  client_->Leave(reason, [this] { core_.OnGoodbyeHeard(); });
}

void Agent::Finish(const RunResult& result) {
  health_check_.reset();
  // From the loop: this agent, which is on the stack now, may be destroyed then.
  log_deliveries_.WhenDone(kLogLimit,
                           [finished = std::move(finished_), result] { finished(result); });
}

void Agent::Tell(Level level, const std::string& sentence) {
  spdlog::log(level == Level::kWarning ? spdlog::level::warn : spdlog::level::info, "{}", sentence);
}

void Agent::Note(const AgentEvent& event) {
  if (event.kind == AgentEventKind::kJoining) observer_.on_state(RunState::kWaiting);
  if (event.kind == AgentEventKind::kStopping) {
    observer_.on_state(core_.result() ? RunState::kStopping : RunState::kRestarting);
  }
  observer_.on_event(event);
}

rendezvous::JobSettings Agent::Settings() const {
  const LaunchConfig& config = parts_.config;
  return {.min_nodes = config.min_nodes,
          .max_nodes = config.max_nodes,
          .last_call = config.timeouts.last_call,
          .join_timeout = config.timeouts.join,
          .lease = config.timeouts.lease,
          .keep_alive = config.timeouts.keep_alive_interval,
          .max_restarts = config.max_restarts,
          .exact_ranks = config.mode == RendezvousMode::kStatic,
          .store_tunnel = config.worker_store == WorkerStore::kTunnel,
          .scale_up = config.scale_up,
          .restart = config.restart,
          .straggler_threshold = config.straggler_threshold};
}

}  // namespace muster::launcher
