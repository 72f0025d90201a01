#include "launcher/commands/run.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/agent.h"
#include "launcher/error_file.h"
#include "launcher/flags.h"
#include "launcher/local_address.h"
#include "launcher/log_layout.h"
#include "launcher/log_sink.h"
#include "launcher/random_name.h"
#include "launcher/rendezvous_access.h"
#include "launcher/report.h"
#include "launcher/signals.h"
#include "worker/failure_record.h"

namespace muster::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSetUpFailed = 1;
constexpr int kRendezvousFailed = 3;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::warn;
}

// Log lines in torch's form: "W1121 16:54:02.337 18678 muster] round 0 is over: ...".
void SendLogTo(boost::asio::io_context& io, worker::Console& console, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("muster", std::make_shared<LogSink>(io, console));
  logger->set_pattern("%L%m%d %H:%M:%S.%e %P muster] %v");
  logger->set_level(ToSpdlog(level));
  spdlog::set_default_logger(std::move(logger));
}

// A name for this agent process that no other has, made of characters that names may have.
std::string MakeNodeId(const std::string& host) {
  std::string id = host.substr(0, 40);
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  if (id.empty() || id.front() == '-') id.insert(0, "n");
  return absl::StrCat(id, "-", getpid(), "-", RandomName(6));
}

rendezvous::NodeInfo DescribeNode(const LaunchConfig& config, const Environment& environment,
                                  const std::string& address) {
  rendezvous::NodeInfo node;
  node.host = HostName();
  node.node_id = MakeNodeId(node.host);
  node.address = address;
  node.slots = config.nproc_per_node;
  node.rank_hint = config.node_rank;
  node.role = config.role;
  node.devices =
      absl::StrSplit(GetOr(environment, "CUDA_VISIBLE_DEVICES", ""), ',', absl::SkipEmpty());
  return node;
}

// One run of this node, with everything it is made of in the order in which it depends on one
// another.
class Run {
 public:
  Run(boost::asio::io_context& io, LaunchConfig config, Environment environment)
      : io_(io),
        config_(std::move(config)),
        environment_(std::move(environment)),
        console_(io, [](const std::string& sentence) { spdlog::warn("{}", sentence); }),
        signals_(
            io, [this](int signal) { OnStopSignal(signal); },
            [this](int signal) {
              if (agent_) agent_->PassOn(signal);
            }) {
    SendLogTo(io, console_, config_.log_level);
  }

  ~Run() {
    // What gRPC's threads may still have to say no longer finds the console.
    spdlog::set_level(spdlog::level::off);
  }

  int Execute() {
    absl::StatusOr<LogLayout> logs =
        LogLayout::Create(config_.log_dir, config_.run_id, GetOr(environment_, "TMPDIR", "/tmp"));
    if (!logs.ok()) return Fail(logs.status(), kSetUpFailed);
    absl::StatusOr<RendezvousAccess> access = RendezvousAccess::Open(io_, config_);
    if (!access.ok()) return Fail(access.status(), kRendezvousFailed);
    access_.emplace(*std::move(access));

    const bool fixed_port = config_.mode == RendezvousMode::kStatic && config_.max_nodes == 1;
    agent_ = std::make_unique<Agent>(
        io_, console_,
        AgentParts{.config = config_,
                   .environment = environment_,
                   .logs = *std::move(logs),
                   .node = DescribeNode(config_, environment_, access_->local_address()),
                   .fixed_master_port = fixed_port ? config_.endpoint.port : std::uint16_t{0}},
        [this](auto& listener) { return access_->MakeClient(listener); });
    agent_->Run([this](const RunResult& result) { OnFinished(result); });
    io_.run();
    console_.Flush(std::chrono::seconds(5));
    return exit_code_;
  }

 private:
  void OnStopSignal(int signal) {
    if (agent_ != nullptr) {
      agent_->OnStopSignal(signal);
    } else {
      // Only other nodes are still waited for, and the user will not wait.
      io_.stop();
    }
  }

  void OnFinished(const RunResult& result) {
    agent_.reset();
    exit_code_ = ExitCodeFor(result, config_.exit_code);
    console_.Write(worker::StreamKind::kStderr, FormatReport(result, MakeContext(result)));
    std::string why;
    if (const auto* interrupted = std::get_if<Interrupted>(&result)) {
      why = absl::StrCat("the node that hosts the rendezvous was interrupted by ",
                         worker::SignalName(interrupted->signal));
    } else if (std::holds_alternative<RendezvousFailed>(result)) {
      why = "the node that hosts the rendezvous has failed";
    }
    access_->Close(why, [this] { signals_.Close(); });
  }

  ReportContext MakeContext(const RunResult& result) const {
    ReportContext context{
        .program = config_.program.name,
        .host = HostName(),
        .now = absl::Now(),
        .zone = absl::LocalTimeZone(),
        .elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_),
        .verbose = config_.log_level <= LogLevel::kInfo};
    const auto* verdict = std::get_if<rendezvous::Verdict>(&result);
    // Another node's error file may have a namesake here.
    if (verdict != nullptr && verdict->root_cause && verdict->root_cause->host == context.host &&
        !verdict->root_cause->error_file.empty()) {
      context.error = ReadErrorFile(verdict->root_cause->error_file);
    }
    return context;
  }

  int Fail(const absl::Status& status, int exit_code) {
    console_.Write(worker::StreamKind::kStderr,
                   absl::StrCat("muster run: ", std::string(status.message()), "\n"));
    console_.Flush(std::chrono::seconds(5));
    return exit_code;
  }

  boost::asio::io_context& io_;
  const LaunchConfig config_;
  const Environment environment_;
  const Clock::time_point started_ = Clock::now();

  worker::Console console_;
  Signals signals_;
  std::optional<RendezvousAccess> access_;
  std::unique_ptr<Agent> agent_;
  int exit_code_ = 0;
};

}  // namespace

int RunCommand(const std::vector<std::string>& args) {
  Environment environment = ReadEnvironment(environ);
  ParsedRun parsed = ParseRun(args, environment, LookAtMachine());
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    std::fprintf(stderr, "muster run: %s\n", error->sentence.c_str());
    return 2;
  }
  if (const auto* request = std::get_if<TextRequest>(&parsed)) {
    std::fputs(request->text.c_str(), stdout);
    return 0;
  }
  // Never destroyed: a thread of gRPC's may still post to it while the program ends.
  static auto* const io = new boost::asio::io_context(1);
  return Run(*io, std::get<LaunchConfig>(std::move(parsed)), std::move(environment)).Execute();
}

}  // namespace muster::launcher
