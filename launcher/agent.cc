#include "launcher/agent.h"

#include <utility>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "launcher/error_file.h"
#include "launcher/rank_layout.h"
#include "rendezvous/core/phrases.h"

namespace muster::launcher {
namespace {

const char* EndName(worker::GroupEnd end) {
  switch (end) {
    case worker::GroupEnd::kSucceeded:
      return "succeeded";
    case worker::GroupEnd::kFailed:
      return "failed";
    case worker::GroupEnd::kStopped:
      return "stopped";
  }
  return "";
}

// For the guard of the workers.
std::optional<worker::DeathNotice> DeathNoticeOf(const rendezvous::RendezvousClient& client) {
  const auto notice = client.death_notice();
  if (!notice) return std::nullopt;
  const auto* const address = reinterpret_cast<const char*>(notice->to.data());
  return worker::DeathNotice{{address, address + notice->to.size()}, notice->text};
}

}  // namespace

Agent::Agent(boost::asio::io_context& io, worker::Console& console, WorkersStore& store,
             AgentParts parts, AgentObserver observer, const ClientFactory& make_client)
    : io_(io),
      console_(console),
      store_(store),
      parts_(std::move(parts)),
      observer_(std::move(observer)),
      client_(make_client(*this)) {}

Agent::~Agent() = default;

void Agent::Run(std::function<void(const RunResult&)> finished) {
  finished_ = std::move(finished);
  Do(policy_.Begin());
}

void Agent::OnStopSignal(int signal) {
  spdlog::warn("received {}", worker::SignalName(signal));
  TellRound(AgentEventKind::kSignal, worker::SignalName(signal));
  Do(policy_.OnSignal(signal));
}

void Agent::PassOn(int signal) {
  if (workers_ != nullptr) workers_->ForwardSignal(signal);
}

void Agent::KillOverdue(pid_t pid, const std::string& scope, int signal) {
  const std::string reason = absl::StrCat("its watchdog timer '", scope, "' expired");
  if (workers_ == nullptr || !workers_->KillFor(pid, signal, reason)) {
    spdlog::warn("watchdog: timer '{}' names process {}, which is no worker's; left alone", scope,
                 pid);
  }
}

void Agent::OnFirstBeat(int rank) {
  TellWorker(AgentEventKind::kFirstBeat, rank, 0, "");
}

void Agent::OnHang(int rank, const std::string& what) {
  spdlog::warn("rank {} {}", rank, what);
  TellWorker(AgentEventKind::kHang, rank, 0, what);
}

void Agent::OnEvidence(const worker::Evidence& evidence) {
  if (evidence.file.empty()) {
    // Without a log directory this is the only place for it.
    spdlog::warn("what rank {} was doing{}{}:\n{}", evidence.rank,
                 evidence.problem.empty() ? "" : ", which could not be written: ", evidence.problem,
                 evidence.text);
  } else {
    spdlog::warn("what rank {} was doing is in {}", evidence.rank, evidence.file);
  }
  TellWorker(AgentEventKind::kEvidence, evidence.rank, 0, evidence.file);
}

void Agent::TellWorker(AgentEventKind kind, int rank, int pid, std::string cause) {
  observer_.on_event(
      {.kind = kind, .round = round_, .rank = rank, .pid = pid, .cause = std::move(cause)});
}

void Agent::TellRound(AgentEventKind kind, std::string cause) {
  observer_.on_event({.kind = kind, .round = round_, .cause = std::move(cause)});
}

void Agent::OnDirective(const rendezvous::Directive& directive) {
  if (const auto* waiting = std::get_if<rendezvous::Waiting>(&directive)) {
    observer_.on_event(
        {.kind = AgentEventKind::kWaiting, .round = waiting->round, .cause = waiting->sentence});
  } else if (const auto* stop = std::get_if<rendezvous::Stop>(&directive)) {
    observer_.on_event(
        {.kind = AgentEventKind::kToldToStop, .round = stop->round, .cause = stop->reason});
  } else if (const auto* verdict = std::get_if<rendezvous::Verdict>(&directive)) {
    TellRound(AgentEventKind::kVerdict, verdict->sentence);
  } else if (const auto* evicted = std::get_if<rendezvous::Evicted>(&directive)) {
    TellRound(AgentEventKind::kEvicted, evicted->sentence);
  }
  Do(policy_.OnDirective(directive));
}

void Agent::OnTrouble(const std::string& trouble) {
  spdlog::warn("{}", trouble);
}

void Agent::OnOutOfTouch(const std::string& cause) {
  spdlog::warn("{}; trying to come back", cause);
  TellRound(AgentEventKind::kOutOfTouch, cause);
}

void Agent::OnBackInTouch(rendezvous::Duration outage) {
  const std::string after = rendezvous::Seconds(outage);
  spdlog::warn("the rendezvous is there again, after {}", after);
  TellRound(AgentEventKind::kBackInTouch, after);
}

void Agent::OnDeadline(std::optional<rendezvous::TimePoint> deadline) {
  deadline_ = deadline;
  if (workers_ != nullptr) workers_->SetDeadline(deadline);
}

void Agent::OnFenced(const std::string& why) {
  if (workers_ != nullptr) TellRound(AgentEventKind::kFenced, why);
  Do(policy_.OnFenced(why));
}

void Agent::OnLost(const absl::Status& status) {
  TellRound(AgentEventKind::kLost, std::string(status.message()));
  Do(policy_.OnLost(status));
}

void Agent::Do(const Actions& actions) {
  for (const Action& action : actions) {
    std::visit([this](const auto& kind) { Do(kind); }, action);
  }
}

void Agent::Do(const JoinRound& join) {
  observer_.on_state(RunState::kWaiting);
  observer_.on_event({.kind = AgentEventKind::kJoining});
  if (parts_.config.health.command.empty() || !unfit_.empty()) return JoinAs(join.after, unfit_);
  CheckHealth(join.after);
}

void Agent::CheckHealth(rendezvous::RoundNumber after) {
  health_check_ = std::make_unique<worker::HealthCheck>(
      io_, worker::HealthCheckOptions{.command = parts_.config.health.command,
                                      .timeout = parts_.config.health.timeout,
                                      .env = ToBlock(parts_.base.environment)});
  health_check_->Start([this, after](const absl::Status& status) {
    // Gone, so that nothing of it is left when workers start.
    health_check_.reset();
    std::string unfit(status.message());
    if (!status.ok()) TellRound(AgentEventKind::kUnfit, unfit);
    JoinAs(after, unfit);
  });
}

void Agent::JoinAs(rendezvous::RoundNumber after, const std::string& unfit) {
  const absl::StatusOr<std::uint16_t> port = store_.Prepare();
  if (!port.ok()) return Do(policy_.OnCannotStart(port.status()));
  rendezvous::NodeInfo node = parts_.node;
  node.master_port = *port;
  node.serves_store = parts_.config.worker_store == WorkerStore::kAgent;
  client_->Join({.run_id = parts_.config.run_id,
                 .settings = Settings(),
                 .node = std::move(node),
                 .after = after,
                 .unfit = unfit});
}

void Agent::Do(const StartWorkers& start) {
  const rendezvous::Assignment& assignment = start.assignment;
  round_ = assignment.round;
  TellRound(AgentEventKind::kAssigned, assignment.rank_reason);
  const absl::StatusOr<AttemptLogs> logs = parts_.logs.BeginAttempt(
      assignment.restart_count, assignment.round, parts_.config.nproc_per_node);
  if (!logs.ok()) return Do(policy_.OnCannotStart(logs.status()));
  spdlog::info("round {}: group rank {} of {}, ranks {} to {} of {}, master {}:{}",
               assignment.round, assignment.group_rank, assignment.group_world_size,
               assignment.base_rank, assignment.base_rank + parts_.config.nproc_per_node - 1,
               assignment.world_size, assignment.master_addr, assignment.master_port);
  if (const absl::Status status = store_.BeginRound(assignment); !status.ok()) {
    return Do(policy_.OnCannotStart(status));
  }

  observer_.on_round(assignment);
  other_failures_.clear();

  workers_ = std::make_unique<worker::WorkerGroup>(
      io_,
      worker::WorkerGroupOptions{
          .ladder = {.first_signal = SIGTERM, .grace = parts_.config.shutdown_timeout},
          .death_notice = DeathNoticeOf(*client_)},
      console_,
      worker::WorkerGroupCallbacks{
          .on_first_failure =
              [this](const worker::FailureRecord& record) { OnFirstFailure(record); },
          .on_done = [this](const worker::GroupResult& result) { OnWorkersDone(result); },
          .on_started = [this, directory = logs->directory] { OnWorkersStarted(directory); },
          .on_stopped =
              [this](int rank, pid_t pid, const std::string& what) {
                spdlog::warn("rank {} (pid {}) {}", rank, pid, what);
                TellWorker(AgentEventKind::kWorkerStopped, rank, pid, what);
              },
          .on_continued =
              [this](int rank, pid_t pid) {
                spdlog::warn("rank {} (pid {}) goes on", rank, pid);
                TellWorker(AgentEventKind::kWorkerContinued, rank, pid, "");
              },
          .on_warning = [](const std::string& sentence) { spdlog::warn("{}", sentence); }});
  workers_->SetDeadline(deadline_);
  workers_->Start(LayOutRanks(parts_.config, assignment, parts_.base, *logs));
}

void Agent::OnWorkersStarted(const std::string& logs) {
  TellRound(AgentEventKind::kWorkersStarted);
  if (parts_.hang != nullptr) parts_.hang->BeginRound(*workers_, logs);
  Do(policy_.OnWorkersStarted());
}

void Agent::OnFirstFailure(const worker::FailureRecord& record) {
  StopWatching();
  // The guard was faster than we were, or we stood still.
  if (record.lost_touch) return OnFenced("the workers' time without a rendezvous is over");
  spdlog::warn("rank {} {}", record.rank, record.what);
  TellWorker(AgentEventKind::kWorkerFailed, record.rank, record.pid, record.what);
  Do(policy_.OnFirstFailure(ToReport(record)));
}

void Agent::StopWatching() {
  if (parts_.hang != nullptr) parts_.hang->EndRound();
}

void Agent::OnWorkersDone(const worker::GroupResult& result) {
  for (const worker::WorkerExit& exit : result.exits) {
    if (exit.status) continue;
    unfit_ = absl::StrCat("rank ", exit.rank, " (pid ", exit.pid, ") cannot be killed: it ",
                          exit.stuck.empty() ? "does not end" : exit.stuck);
  }
  for (const worker::FailureRecord& record : result.other_failures) {
    other_failures_.push_back(ToReport(record));
  }
  StopWatching();
  workers_.reset();
  TellRound(AgentEventKind::kWorkersGone, EndName(result.end));
  Do(policy_.OnWorkersGone(result.end == worker::GroupEnd::kSucceeded));
}

void Agent::Do(const StopWorkers& stop) {
  if (workers_ == nullptr) return;
  StopWatching();
  observer_.on_state(policy_.result() ? RunState::kStopping : RunState::kRestarting);
  TellRound(AgentEventKind::kStopping, worker::SignalName(stop.signal));
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

void Agent::Do(const SayLeaving& leaving) {
  client_->Leaving(leaving.reason);
}

void Agent::Do(const SayGoodbye& goodbye) {
  health_check_.reset();
  client_->Leave(goodbye.reason, [this] { Do(policy_.OnGoodbyeHeard()); });
}

void Agent::Do(const Finish&) {
  health_check_.reset();
  // From the loop: whoever hears it may destroy this agent, which is on the stack now.
  boost::asio::post(
      io_, [finished = std::move(finished_), result = *policy_.result()] { finished(result); });
}

void Agent::Do(const Tell& tell) {
  if (tell.level == Tell::kWarning) {
    spdlog::warn("{}", tell.sentence);
  } else {
    spdlog::info("{}", tell.sentence);
  }
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
          .exact_ranks = config.mode == RendezvousMode::kStatic && config.max_nodes > 1,
          .scale_up = config.scale_up,
          .restart = config.restart};
}

rendezvous::WorkerFailure Agent::ToReport(const worker::FailureRecord& record) const {
  rendezvous::WorkerFailure failure{.rank = record.rank,
                                    .local_rank = record.local_rank,
                                    .host = parts_.node.host,
                                    .pid = record.pid,
                                    .exit_code = record.status.exit_code,
                                    .signal = record.status.signal,
                                    .what = record.what,
                                    .stderr_tail = record.stderr_tail,
                                    .log_path = record.log_path,
                                    .error_file = record.error_file};
  const HangMonitor* const hang = parts_.hang;
  failure.before_first_beat = hang != nullptr && !hang->had_beat(record.rank);
  failure.final = hang != nullptr && hang->ends_job(record.rank);
  for (const ExitCodeRange& range : parts_.config.final_exit_codes) {
    const int code = failure.exit_code;
    if (failure.signal == 0 && range.first <= code && code <= range.last) failure.final = true;
  }
  // Read here, where the file is: every node shows it.
  if (const auto error = ReadErrorFile(record.error_file)) {
    failure.error_message = error->message;
    failure.error_traceback = error->traceback;
    failure.error_time = error->timestamp.value_or(0);
  }
  return failure;
}

}  // namespace muster::launcher
