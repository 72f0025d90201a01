#include "launcher/agent/agent.h"

#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "base/redact.h"
#include "launcher/agent/rank_layout.h"
#include "launcher/environment.h"
#include "launcher/report/error_file.h"
#include "launcher/report/failure_report.h"
#include "worker/flight/flight_log.h"
#include "worker/flight/flight_report.h"

namespace muster::launcher {
namespace {

// How long the end of a run waits for those who read what its workers have printed.
constexpr std::chrono::seconds kLogLimit(5);

// Whether the user wants to know that the node is fit before each round.
Fitness::HealthCheck HealthCheckOf(const LaunchConfig& config) {
  return config.health.command.empty() ? Fitness::HealthCheck::kNone
                                       : Fitness::HealthCheck::kBeforeEachJoin;
}

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
      core_(HealthCheckOf(parts_.config), parts_.config.shutdown_timeout,
            {.min_nodes = parts_.config.min_nodes,
             .max_nodes = parts_.config.max_nodes,
             .serves_rendezvous = parts_.serves_rendezvous},
            parts_.sigterm_counts_once),
      client_(make_client(*this)),
      log_deliveries_(io, parts_.node.host) {}

Agent::~Agent() = default;

void Agent::Run(std::function<void(const RunResult&)> finished) {
  finished_ = std::move(finished);
  Do(core_.Begin());
}

void Agent::OnStopSignal(int signal) {
  Do(core_.OnSignal(signal));
}

void Agent::OnDrained(const std::string& why) {
  Do(core_.OnDrained(why));
}

void Agent::AddStranger(pid_t child) {
  if (workers_ != nullptr) workers_->AddStranger(child);
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

void Agent::OnFirstBeat(int rank) {
  TellWorker(AgentEventKind::kFirstBeat, rank, 0, "");
}

void Agent::OnHang(int rank, const std::string& what) {
  spdlog::warn("rank {} {}", rank, what);
  TellWorker(AgentEventKind::kHang, rank, 0, what);
  SetTrouble(rank, rendezvous::TroubleKind::kSilent, what);
}

void Agent::OnLife(int rank) {
  EndTrouble(rank, rendezvous::TroubleKind::kSilent);
}

void Agent::OnOutputLost(int rank, const std::string& what) {
  // "write FILE: CAUSE"; of a long phrase the end is cut off on the way.
  const std::size_t colon = what.rfind(": ");
  const std::string cause =
      absl::StrCat("has lost output: ", what.substr(colon + 2), " (", what.substr(0, colon), ")");
  TellWorker(AgentEventKind::kOutputLost, rank, 0, cause);
  // There may be room again, but what was lost is not there.
  SetTrouble(rank, rendezvous::TroubleKind::kOutputLost, cause);
}

void Agent::SetTrouble(int rank, rendezvous::TroubleKind kind, const std::string& what) {
  if (progress_.SetTrouble(rank, kind, what, std::chrono::steady_clock::now())) {
    client_->ProgressMade();
  }
}

void Agent::EndTrouble(int rank, rendezvous::TroubleKind kind) {
  if (progress_.EndTrouble(rank, kind)) client_->ProgressMade();
}

void Agent::OnEvidence(const worker::Evidence& evidence) {
  if (evidence.file.empty()) {
    // Without a log directory this is the only place for it.
    spdlog::warn("stack traces of rank {}{}{}:\n{}", evidence.rank,
                 evidence.problem.empty() ? "" : ", which could not be written: ", evidence.problem,
                 evidence.text);
  } else {
    spdlog::warn("stack traces of rank {}: {}", evidence.rank, evidence.file);
  }
  TellWorker(AgentEventKind::kEvidence, evidence.rank, 0, evidence.file);
}

std::vector<worker::RankFlight> Agent::Operations() const {
  if (!flights_.has_value()) return {};
  return flights_->Read(first_rank_);
}

bool Agent::OperationsAreNews() const {
  return worker::LastMove(Operations()) > told_operations_at_;
}

std::string Agent::TellOperations() {
  const std::string sentence = worker::ExplainFlights(Operations(), worker::FlightNow());
  if (sentence.empty()) return "";
  told_operations_at_ = worker::FlightNow();
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
      OperationsAreNews() &&
      worker::LongestStay(Operations(), worker::FlightNow()) >= worker::kLongStay) {
    TellOperations();
  }
  Do(core_.OnDirective(directive, std::chrono::steady_clock::now()));
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
  // Another daemon may lead now. The workers' notice is for the attendance that they were started
  // in, and the session in it stays the same as long as they run. First of all, as from now on we
  // may die.
  const auto notice = DeathNoticeOf(*client_);
  if (workers_ != nullptr && notice) workers_->MoveDeathNotice(notice->to);
  const std::string after = base::Seconds(outage);
  spdlog::warn("reconnected to the rendezvous after {}", after);
  TellRound(AgentEventKind::kBackInTouch, after);
}

void Agent::OnDeadline(std::optional<rendezvous::TimePoint> deadline) {
  Do(core_.OnDeadline(deadline));
}

void Agent::OnFenced(const std::string& why) {
  Do(core_.OnFenced(why));
}

void Agent::OnLost(const absl::Status& status) {
  Do(core_.OnLost(status));
}

void Agent::Do(const CoreActions& actions) {
  for (const CoreAction& action : actions) {
    std::visit([this](const auto& kind) { Do(kind); }, action);
  }
}

void Agent::Do(const CheckHealth&) {
  health_check_ = std::make_unique<worker::HealthCheck>(
      io_, worker::HealthCheckOptions{.command = parts_.config.health.command,
                                      .timeout = parts_.config.health.timeout,
                                      .env = ToBlock(parts_.base.environment)});
  health_check_->Start([this](const absl::Status& status) {
    // Gone, so that nothing of it is left when workers start.
    health_check_.reset();
    Do(core_.OnHealth(status));
  });
}

void Agent::Do(const DropHealthCheck&) {
  health_check_.reset();
}

void Agent::Do(const AskForPlace& ask) {
  const absl::StatusOr<std::uint16_t> port = store_.Prepare();
  if (!port.ok()) return Do(core_.OnCannotStart(port.status()));
  rendezvous::NodeInfo node = parts_.node;
  node.master_port = *port;
  node.serves_store = parts_.config.worker_store != WorkerStore::kWorker;
  client_->Join({.run_id = parts_.config.run_id,
                 .settings = Settings(),
                 .node = std::move(node),
                 .after = ask.after.number,
                 .ran_in = ask.after.incarnation,
                 .unfit = ask.unfit});
}

void Agent::Do(const GuardWorkers& guard) {
  if (workers_ != nullptr) workers_->SetDeadline(guard.deadline);
}

void Agent::Do(const StartWorkers& start) {
  const rendezvous::Assignment& assignment = start.assignment;
  absl::StatusOr<AttemptLogs> logs = parts_.logs.BeginAttempt(
      assignment.restart_count, assignment.round, parts_.config.nproc_per_node);
  if (!logs.ok()) return Do(core_.OnCannotStart(logs.status()));
  spdlog::info("round {}: group rank {} of {}, ranks {} to {} of {}, master {}:{}",
               assignment.round, assignment.group_rank, assignment.group_world_size,
               assignment.base_rank, assignment.base_rank + parts_.config.nproc_per_node - 1,
               assignment.world_size, assignment.master_addr, assignment.master_port);
  const absl::StatusOr<rendezvous::Endpoint> store = store_.BeginRound(assignment);
  if (!store.ok()) return Do(core_.OnCannotStart(store.status()));

  // New for each round, as no rank is any more where those before were.
  auto flights = worker::FlightFile::Create(parts_.config.nproc_per_node);
  flights_.reset();
  if (flights.ok()) {
    flights_.emplace(*std::move(flights));
    logs->flight_log = flights_->path();
    for (int local_rank = 0; local_rank < parts_.config.nproc_per_node; ++local_rank) {
      logs->flight_offsets.push_back(flights_->OffsetOf(local_rank));
    }
  } else {
    spdlog::info("failures are reported without the workers' operations: {}",
                 std::string(flights.status().message()));
  }
  first_rank_ = assignment.base_rank;
  progress_.Begin(assignment.id(), assignment.base_rank, parts_.config.nproc_per_node);
  told_operations_at_ = 0;

  observer_.on_round(assignment);
  other_failures_.clear();

  if (parts_.has_gpus) kernel_log_.emplace(KernelLog::From::kNow);
  workers_ = std::make_unique<worker::WorkerGroup>(
      io_,
      worker::WorkerGroupOptions{
          .ladder = {.first_signal = SIGTERM, .grace = parts_.config.shutdown_timeout},
          .death_notice = DeathNoticeOf(*client_),
          .file_of_agent = parts_.hang == nullptr ? "" : parts_.hang->socket_path()},
      console_,
      worker::WorkerGroupCallbacks{
          .on_first_failure =
              [this](const worker::FailureRecord& record) { OnFirstFailure(record); },
          .on_done = [this](const worker::GroupResult& result) { OnWorkersDone(result); },
          .on_started = [this, directory = logs->directory,
                         nodes =
                             assignment.group_world_size] { OnWorkersStarted(directory, nodes); },
          .on_stopped =
              [this](int rank, pid_t pid, const std::string& what) {
                spdlog::warn("rank {} (pid {}) {}", rank, pid, what);
                TellWorker(AgentEventKind::kWorkerStopped, rank, pid, what);
                SetTrouble(rank, rendezvous::TroubleKind::kStopped, what);
              },
          .on_continued =
              [this](int rank, pid_t pid) {
                spdlog::warn("rank {} (pid {}) was continued", rank, pid);
                TellWorker(AgentEventKind::kWorkerContinued, rank, pid, "");
                EndTrouble(rank, rendezvous::TroubleKind::kStopped);
              },
          .on_output_lost = [this](int rank, const std::string& what) { OnOutputLost(rank, what); },
          .on_warning = [](const std::string& sentence) { spdlog::warn("{}", sentence); }});
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

void Agent::OnWorkersStarted(const std::string& logs, int nodes) {
  if (parts_.hang != nullptr) parts_.hang->BeginRound(*workers_, logs, nodes);
  Do(core_.OnWorkersStarted());
}

void Agent::OnFirstFailure(const worker::FailureRecord& record) {
  StopWatching();
  if (record.lost_touch) return Do(core_.OnLostTouch());
  rendezvous::WorkerFailure failure = ToReport(record);
  failed_at_ = record.failed_at;
  if (parts_.hang != nullptr) {
    // It had stopped to work before it was killed for that.
    failed_at_ = parts_.hang->silent_since(record.rank).value_or(record.failed_at);
  }
  if (kernel_log_) failure.what += XidsBefore(kernel_log_->ReadNew(), record.pid);
  // The others still run.
  failure.operations = worker::ExplainFlights(Operations(), worker::FlightNow());
  Do(core_.OnFirstFailure(failure));
  if (failure.operations.empty()) return;
  TellRound(AgentEventKind::kOperations, failure.operations);
  // Of a hang it was said already, and the report says it again.
  if (OperationsAreNews()) spdlog::warn("{}", failure.operations);
}

void Agent::StopWatching() {
  if (parts_.hang != nullptr) parts_.hang->EndRound();
}

void Agent::OnWorkersDone(const worker::GroupResult& result) {
  progress_.Clear();
  for (const worker::FailureRecord& record : result.other_failures) {
    other_failures_.push_back(ToReport(record));
  }
  StopWatching();
  log_bytes_lost_ += result.log_bytes_dropped;
  workers_.reset();
  kept_logs_.EndRound();
  Do(core_.OnWorkersGone(result));
}

void Agent::Do(const StopWorkers& stop) {
  StopWatching();
  workers_->Stop({.first_signal = stop.signal, .grace = parts_.config.shutdown_timeout});
}

void Agent::Do(const KillWorkers&) {
  if (workers_ == nullptr) return;
  StopWatching();
  workers_->StopNow();
}

void Agent::Do(const ReportStarted& report) {
  client_->WorkersStarted(report.round);
}

void Agent::Do(const ReportExited& report) {
  client_->WorkersExited(report.round, report.outcome);
}

std::uint64_t Agent::LogBytesLost() const {
  return log_bytes_lost_ + (workers_ == nullptr ? 0 : workers_->log_bytes_dropped());
}

void Agent::Do(const SayLeaving& leaving) {
  client_->Leaving(leaving.reason);
}

void Agent::Do(const AskToLeave& ask) {
  client_->AskToLeave(ask.round, ask.reason);
}

void Agent::Do(const SayGoodbye& goodbye) {
  client_->Leave(goodbye.reason, [this] { Do(core_.OnGoodbyeHeard()); });
}

void Agent::Do(const Finish&) {
  // From the loop: whoever hears it may destroy this agent, which is on the stack now.
  log_deliveries_.WhenDone(
      kLogLimit, [finished = std::move(finished_), result = *core_.result()] { finished(result); });
}

void Agent::Do(const Tell& tell) {
  if (tell.level == Tell::kWarning) {
    spdlog::warn("{}", tell.sentence);
  } else {
    spdlog::info("{}", tell.sentence);
  }
}

void Agent::Do(const RunState& state) {
  observer_.on_state(state);
}

void Agent::Do(const AgentEvent& event) {
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

rendezvous::WorkerFailure Agent::ToReport(const worker::FailureRecord& record) const {
  const HangMonitor* const hang = parts_.hang;
  ProgressFacts progress;
  if (hang != nullptr && parts_.config.needs_beats()) {
    progress = {.no_beat_yet = !hang->had_beat(record.rank),
                .ends_job = hang->ends_job(record.rank)};
  }
  rendezvous::WorkerFailure failure =
      ReportOf(record, parts_.node, progress, parts_.config.final_exit_codes);
  // Read here, where the file is: every node shows it.
  if (const auto error = ReadErrorFile(record.error_file)) {
    failure.error_message = error->message;
    failure.error_traceback = error->traceback;
    failure.error_time = error->timestamp.value_or(0);
  }
  // Other nodes and the rendezvous are told what it has said last.
  const base::Redactor redact(ToBlock(parts_.base.environment), parts_.config.program.argv);
  for (std::string* const text :
       {&failure.what, &failure.stderr_tail, &failure.error_message, &failure.error_traceback}) {
    *text = redact(*text);
  }
  return failure;
}

}  // namespace muster::launcher
