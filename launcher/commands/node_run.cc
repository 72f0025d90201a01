#include "launcher/commands/run.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "base/program.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/program.h"
#include "launcher/machine/network.h"
#include "launcher/replay/agent_event.h"
#include "launcher/run/agent.h"
#include "launcher/run/failure_report.h"
#include "launcher/run/hang_monitor.h"
#include "launcher/run/interruptions.h"
#include "launcher/run/log_sink.h"
#include "launcher/run/rank_layout.h"
#include "launcher/run/rendezvous_access.h"
#include "launcher/run/run_status.h"
#include "launcher/run/workers_store.h"
#include "launcher/views/report.h"
#include "worker/env_names.h"
#include "worker/hang/file_watchdog.h"

namespace muster::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// How long the end of a run that was interrupted, or never began, waits for a reader of our output.
constexpr std::chrono::seconds kOutputLimit(5);

// One run of this node, and all that it is made of: the members are the parts of the agent's
// process, in the order in which they depend on one another.
class Run {
 public:
  Run(boost::asio::io_context& io, LaunchConfig config, Environment environment,
      const Machine& machine, std::optional<int> speech_fd, std::optional<int> orders_fd)
      : io_(io),
        config_(std::move(config)),
        environment_(std::move(environment)),
        machine_(machine),
        console_(io, [](const std::string& sentence) { spdlog::warn("{}", sentence); }),
        speech_(OpenSpeech(io, speech_fd)),
        signals_(
            io, {config_.stop_signals, orders_fd, in_slurm_},
            [this](int signal) { OnStopSignal(signal); },
            [this](int signal) {
              if (agent_) agent_->PassOn(signal);
            }),
        suspension_(
            io, [this] { OnSuspend(); }, [this] { OnResume(); }) {
    // What has started this node shows its lines between those of others.
    if (speech_ != nullptr) console_.WriteWholeLines();
    SendLogTo(io, speech(), config_.log_level);
  }

  ~Run() {
    // Its socket is in the directory that is to go.
    drain_.reset();
    agent_.reset();
    hang_.reset();
    if (logs_) logs_->RemoveEmpty();
    // What gRPC's threads may still have to say no longer finds the console.
    spdlog::set_level(spdlog::level::off);
  }

  int Execute() {
    absl::StatusOr<NodeBase> base = MakeNodeBase(config_, environment_, machine_, temp_.path);
    if (!base.ok()) return Fail(base.status(), kExitNodeFailed);
    const absl::StatusOr<std::string> log_dir = LogDirOf(config_, temp_);
    if (!log_dir.ok()) return Fail(log_dir.status(), kExitNodeFailed);
    for (const std::string& note : config_.notes) spdlog::warn("{}", note);
    SayWhereFilesGo();
    const auto credentials = RendezvousCredentials(config_);
    if (!credentials.ok()) return Fail(credentials.status(), kExitBadInput);
    if (config_.health_endpoint) {
      auto health = HealthServer::Open(io_, *config_.health_endpoint);
      if (!health.ok()) return Fail(health.status(), kExitNodeFailed);
      health_ = *std::move(health);
      spdlog::info("answering /healthz at {}",
                   rendezvous::ToString({config_.health_endpoint->host, health_->port()}));
    }
    absl::StatusOr<RendezvousAccess> access = RendezvousAccess::Open(io_, config_, *credentials);
    if (!access.ok()) return Fail(access.status(), kExitRendezvousFailed);
    access_.emplace(*std::move(access));
    auto pages = OpenJobPages(io_, config_, *credentials, access_->server(), turns_);
    if (!pages.ok()) return Fail(pages.status(), kExitNodeFailed);
    pages_ = *std::move(pages);
    rendezvous::NodeInfo node = DescribeNode(config_, base->environment, access_->local_address());
    node_id_ = node.node_id;
    if (!config_.event_log.empty()) {
      auto events = EventLog::Open(
          config_.event_log, {.job = config_.run_id, .node = node_id_, .workers = node.slots});
      if (!events.ok()) return Fail(events.status(), kExitNodeFailed);
      events_ = *std::move(events);
    }
    // Until here nothing was made that nobody asked for, and a signal simply ended this process,
    // even while DNS or a pipe kept it waiting.
    signals_.Begin();
    absl::StatusOr<LogLayout> logs = LogLayout::Create(*log_dir, config_.run_id, temp_.path);
    if (!logs.ok()) return Fail(logs.status(), kExitNodeFailed);
    logs_ = *logs;
    entry_.emplace(io_, config_, environment_, base->environment, machine_, logs->run_directory(),
                   speech_ != nullptr);
    const std::string note = SetGlooInterface(config_, access_->local_address(), base->environment);
    if (!note.empty()) spdlog::warn("{}", note);
    base->rendezvous = RendezvousEndpoint(config_);
    store_.emplace(io_, config_, access_->local_address(), access_->server(), *credentials);

    auto hang = OpenHangMonitor();
    if (hang.ok()) {
      hang_ = *std::move(hang);
      base->beat_socket = hang_->socket_path();
    } else if (config_.needs_beats()) {
      return Fail(hang.status(), kExitNodeFailed);
    } else {
      spdlog::info("workers cannot report their steps: {}", std::string(hang.status().message()));
    }
    if (!base->timer_file.empty()) {
      auto watchdog = worker::FileWatchdog::Open(
          io_, base->timer_file,
          {.on_expired =
               [this](pid_t pid, const std::string& scope, int signal) {
                 if (agent_) agent_->KillOverdue(pid, scope, signal);
               },
           .on_warning = [](const std::string& sentence) { spdlog::warn("{}", sentence); }});
      if (!watchdog.ok()) return Fail(watchdog.status(), kExitNodeFailed);
      watchdog_ = *std::move(watchdog);
    }

    const bool has_gpus = machine_.nvidia_devices > 0 &&
                          !GetOr(base->environment, "CUDA_VISIBLE_DEVICES", "all").empty();
    agent_ =
        std::make_unique<Agent>(io_, console_, *store_,
                                AgentParts{.config = config_,
                                           .base = *std::move(base),
                                           .logs = *std::move(logs),
                                           .node = std::move(node),
                                           .hang = hang_.get(),
                                           .serves_rendezvous = access_->server() != nullptr,
                                           .sigterm_counts_once = in_slurm_,
                                           .has_gpus = has_gpus},
                                AgentObserver{.on_state =
                                                  [this](RunState state) {
                                                    entry_->Show(state);
                                                    if (health_) health_->ShowReady(false);
                                                  },
                                              .on_round =
                                                  [this](const rendezvous::Assignment& round) {
                                                    // Timers of the last round's workers; their
                                                    // pids may be others' by now.
                                                    if (watchdog_) watchdog_->Clear();
                                                    evidence_.clear();
                                                    entry_->ShowRound(round);
                                                    if (health_) health_->ShowReady(true);
                                                  },
                                              .on_event =
                                                  [this](const AgentEvent& event) {
                                                    if (events_) events_->Write(event);
                                                    timeline_.On(event, Clock::now());
                                                    NoteEvidence(event);
                                                  }},
                                [this](auto& listener) { return access_->MakeClient(listener); });
    agent_->Run([this](const RunResult& result) { OnFinished(result); });
    drain_ = DrainWatch::Begin(io_, config_, environment_,
                               {.on_drained = [this](const auto& why) { agent_->OnDrained(why); },
                                .on_command = [this](pid_t pid) { agent_->ExcludeChild(pid); }});
    // Only where somebody may look is the loop measured.
    if (pages_ != nullptr) {
      turns_.Run(io_);
    } else {
      io_.run();
    }
    return exit_code_;
  }

 private:
  // One line where it is not where the user has said, or nowhere.
  void SayWhereFilesGo() const {
    if (!temp_.note.empty()) {
      spdlog::warn("{}", temp_.note);
    } else if (temp_.path.empty() && config_.log_dir.empty()) {
      spdlog::warn("no temporary directory is writable: there will be no logs and no error files");
    }
  }

  absl::StatusOr<std::unique_ptr<HangMonitor>> OpenHangMonitor() {
    return HangMonitor::Open(
        io_, config_.hang, {.own_directory = logs_->own_root(), .temp_dir = temp_.path},
        {.on_beat = [this](const worker::Beat& beat) { agent_->OnBeat(beat); },
         .on_first_beat = [this](int rank) { agent_->OnFirstBeat(rank); },
         .on_hang = [this](int rank, const std::string& what) { agent_->OnHang(rank, what); },
         .on_life = [this](int rank) { agent_->OnLife(rank); },
         .where_ranks_are = [this] { return agent_->TellOperations(); },
         .flights = [this] { return agent_->Operations(); },
         .on_evidence = [this](const worker::Evidence& found) { agent_->OnEvidence(found); },
         .on_warning = [](const std::string& sentence) { spdlog::warn("{}", sentence); }});
  }

  void NoteEvidence(const AgentEvent& event) {
    if (event.kind != AgentEventKind::kEvidence || event.cause.empty()) return;
    evidence_.push_back(event.cause);
  }

  void OnStopSignal(int signal) {
    const bool again = std::exchange(interrupted_, true);
    if (agent_ != nullptr) return agent_->OnStopSignal(signal);
    // Only other nodes, or who reads our output, are still waited for, and the user will not wait.
    again ? GiveUpOutput() : FinishOutput();
  }

  // Whether this process may stand still: nobody else takes part who would go on without it.
  bool MayStandStill() const {
    const bool serves_itself =
        !access_ || access_->server() != nullptr || RendezvousEndpoint(config_).empty();
    return config_.max_nodes == 1 && serves_itself;
  }

  void OnSuspend() {
    if (watchdog_) watchdog_->Suspend();
    if (agent_) agent_->Suspend();
    if (MayStandStill()) {
      ::raise(SIGSTOP);
      return;
    }
    // What has started this node says it for all of them.
    if (speech_ != nullptr) return;
    spdlog::warn(
        "SIGTSTP: this node's workers are stopped, including any that start from now on; this "
        "process keeps running, because the rendezvous would otherwise consider the node lost: "
        "press Ctrl-Z again, or run kill -CONT {}, to continue them",
        ::getpid());
  }

  void OnResume() {
    if (agent_) agent_->Resume();
    if (watchdog_) watchdog_->Resume();
    if (!MayStandStill() && speech_ == nullptr)
      spdlog::warn("the workers of this node are continued");
  }

  void OnFinished(const RunResult& result) {
    const ReportContext context = MakeContext();
    drain_.reset();
    agent_.reset();
    entry_->Freeze();
    if (health_) health_->ShowReady(false);
    hang_.reset();
    watchdog_.reset();
    exit_code_ = ExitCodeFor(result, config_.exit_code);
    if (events_ && events_->lost() > 0) {
      spdlog::warn("{} of the event log {} could not be written",
                   base::Count(static_cast<std::size_t>(events_->lost()), "line"),
                   config_.event_log);
    }
    // That of a node which has failed by itself is nobody else's.
    const bool others_say_it =
        !config_.shows_shared_report && (std::holds_alternative<rendezvous::Verdict>(result) ||
                                         std::holds_alternative<Interrupted>(result));
    const std::string report = others_say_it ? "" : FormatReport(result, context);
    speech().Write(worker::StreamKind::kStderr,
                   speech_ ? std::string(1, kReportMark) + report : report);
    LeaveRootCause(result);
    std::string why;
    if (const auto* interrupted = std::get_if<Interrupted>(&result)) {
      why = absl::StrCat("the node that hosts the rendezvous was interrupted by ",
                         base::SignalName(interrupted->signal));
    } else if (std::holds_alternative<RendezvousFailed>(result) ||
               std::holds_alternative<NodeFailed>(result)) {
      why = "the node that hosts the rendezvous has failed";
    }
    access_->Close(why, [this] {
      if (store_->refused() > 0) {
        spdlog::warn("the workers' store refused {} from hosts that are not nodes of this job",
                     base::Count(store_->refused(), "connection"));
      }
      store_->Close([this] { FinishOutput(); });
    });
  }

  // The last thing to do, and the end of the loop. A slow reader gets everything, however long that
  // takes; but a run that a signal has asked to end must not depend on a reader who may never come.
  void FinishOutput() {
    if (interrupted_ && !output_limit_) {
      output_limit_.emplace(io_, kOutputLimit);
      output_limit_->async_wait([this](boost::system::error_code error) {
        if (!error) GiveUpOutput();
      });
    }
    console_.WhenWritten([this] {
      if (!speech_) return io_.stop();
      speech_->WhenWritten([this] { io_.stop(); });
    });
  }

  void GiveUpOutput() {
    console_.GiveUp();
    if (speech_) speech_->GiveUp();
    io_.stop();
  }

  static std::unique_ptr<worker::Console> OpenSpeech(boost::asio::io_context& io,
                                                     std::optional<int> fd) {
    if (!fd) return nullptr;
    return std::make_unique<worker::Console>(io, nullptr, *fd, *fd);
  }

  // Where what this agent says itself goes.
  worker::Console& speech() { return speech_ ? *speech_ : console_; }

  ReportContext MakeContext() const {
    return {
        .program = config_.program.name,
        .node_id = node_id_,
        .now = absl::Now(),
        .zone = absl::LocalTimeZone(),
        .elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_),
        .others = agent_->other_failures(),
        .evidence = evidence_,
        .restarts = config_.log_level <= LogLevel::kWarning ? timeline_.Lines()
                                                            : std::vector<std::string>(),
        .verbose = config_.log_level <= LogLevel::kInfo};
  }

  // For whoever started this process and asked for an error file, as torchrun does.
  void LeaveRootCause(const RunResult& result) const {
    const std::string path = GetOr(environment_, worker::env::kErrorFile, "");
    const auto* verdict = std::get_if<rendezvous::Verdict>(&result);
    if (path.empty() || verdict == nullptr || !verdict->root_cause) return;
    const absl::Status status = WriteRootCause(
        path, *verdict->root_cause, base::Redactor(ToBlock(environment_), config_.program.argv));
    if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
  }

  int Fail(const absl::Status& status, int exit_code) {
    speech().Write(worker::StreamKind::kStderr,
                   absl::StrCat("muster run: ", std::string(status.message()), "\n"));
    speech().Flush(kOutputLimit);
    return exit_code;
  }

  boost::asio::io_context& io_;
  const LaunchConfig config_;
  const Environment environment_;
  const Machine machine_;
  const TempDir temp_ = FindTempDir(environment_);
  const bool in_slurm_ = environment_.count("SLURM_JOB_ID") > 0;
  const Clock::time_point started_ = Clock::now();

  worker::Console console_;
  // Null: the console.
  const std::unique_ptr<worker::Console> speech_;
  Signals signals_;
  Suspension suspension_;
  std::unique_ptr<HealthServer> health_;
  std::optional<LogLayout> logs_;
  std::optional<RunEntry> entry_;
  std::optional<RendezvousAccess> access_;
  rendezvous::LoopTurns turns_;
  std::unique_ptr<rendezvous::DaemonPages> pages_;
  // Outlives the agent: workers on other nodes may still be ending.
  std::optional<WorkersStore> store_;
  std::unique_ptr<worker::FileWatchdog> watchdog_;
  std::unique_ptr<HangMonitor> hang_;
  std::unique_ptr<EventLog> events_;
  RestartTimeline timeline_;
  std::vector<std::string> evidence_;  // files of the current round
  std::string node_id_;
  std::unique_ptr<Agent> agent_;
  // Null where no scheduler is asked.
  std::unique_ptr<DrainWatch> drain_;
  int exit_code_ = kExitSuccess;
  // A signal has asked the run to end.
  bool interrupted_ = false;
  std::optional<boost::asio::steady_timer> output_limit_;
};

}  // namespace

int RunNode(boost::asio::io_context& io, LaunchConfig config, Environment environment,
            const Machine& machine, std::optional<int> speech_fd, std::optional<int> orders_fd) {
  return Run(io, std::move(config), std::move(environment), machine, speech_fd, orders_fd)
      .Execute();
}

}  // namespace muster::launcher
