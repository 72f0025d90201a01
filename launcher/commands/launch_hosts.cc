#include "launcher/commands/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"
#include "launcher/remote/branch.h"
#include "launcher/remote/launch_state.h"
#include "launcher/remote/launch_wire.h"
#include "launcher/remote/own_program.h"
#include "launcher/run/interruptions.h"
#include "launcher/run/run_registry.h"
#include "proto/launch.pb.h"
#include "rendezvous/identity/token.h"
#include "worker/output/console.h"

namespace muster::launcher {
namespace {

using launch::v1::Output;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How long the end waits for a reader of our output when a signal has asked for the end.
constexpr seconds kReaderLimit(5);
// What hosts have, beyond their nodes' time to stop, to end in.
constexpr seconds kEndLimit(15);
// What those have that did not end in that time: to hear that nobody waits any more.
constexpr milliseconds kLastLimit(500);
// More than nodes need to hear from one another that their job is over.
constexpr seconds kVerdictLimit(15);
constexpr int kInterruptedBase = 128;
// Far more than a report has; what comes from a host is not trusted to end.
constexpr std::size_t kMaxReport = 1024 * 1024;
// Of the agents' sentences.
constexpr std::size_t kRemembered = 32;

// The secret of the job's rendezvous. Made for this job, or the user's own where a musterd is
// named.
absl::StatusOr<std::string> TokenFor(const HostsRun& run) {
  if (run.token.insecure || !run.token.tls.empty()) return "";
  if (run.endpoint.empty()) {
    return run.hosts.size() == 1 ? "" : rendezvous::Token::Random().Text();
  }
  const auto file =
      rendezvous::ReadTokens(run.token.file.empty() ? run.token.own_file : run.token.file);
  if (!file.ok()) return file.status();
  return file->Text();
}

launch::v1::Job MakeJob(const HostsRun& run, const std::string& token) {
  launch::v1::Job job;
  job.set_id(base::RandomName(16));
  job.set_run_id(run.run_id);
  job.set_token(token);
  job.set_dialect(run.dialect);
  job.mutable_flags()->Add(run.flags.begin(), run.flags.end());
  job.mutable_command()->Add(run.command.begin(), run.command.end());
  job.mutable_environment()->Add(run.environment.begin(), run.environment.end());
  job.set_directory(run.directory);
  job.set_min_nodes(run.min_nodes);
  job.set_max_nodes(static_cast<int>(run.hosts.size()));
  job.set_uses_rendezvous(run.hosts.size() > 1 || !run.endpoint.empty());
  job.set_fanout(run.fanout);
  job.set_answer_timeout_ms(run.answer_timeout.count());
  job.set_launch_with(run.launch_with);
  job.set_ssh_control_persist_ms(run.ssh_control_persist.count());
  job.set_ships(run.ships);
  AddTerminals(job, ReadEnvironment(environ));
  return job;
}

LaunchState::Options LaunchStateOf(const HostsRun& run, const launch::v1::Job& job) {
  LaunchState::Options options{.names = {},
                               .min_nodes = run.min_nodes,
                               .serves_rendezvous = job.uses_rendezvous() && run.endpoint.empty()};
  for (const Host& host : run.hosts) options.names.push_back(host.Text());
  return options;
}

class Launch {
 public:
  Launch(boost::asio::io_context& io, HostsRun run, const std::string& token)
      : io_(io),
        run_(std::move(run)),
        job_(MakeJob(run_, token)),
        console_(io,
                 [](const std::string& sentence) {
                   std::fprintf(stderr, "muster run: %s\n", sentence.c_str());
                 }),
        signals_(
            io, {.stop = run_.stop_signals}, [this](int signal) { OnStopSignal(signal); },
            [this](int signal) { branch_.Signal(signal, /*ends_job=*/false); }),
        suspension_(
            io, [this] { OnSuspend(); }, [this] { OnResume(); }),
        launch_state_(LaunchStateOf(run_, job_)),
        branch_(io, job_, OwnProgram(),
                {.on_news = [this](const HostNews& news) { OnNews(news); },
                 .on_output = [this](const Output& output) { OnOutput(output); },
                 .has_room = [this] { return HasRoom(); }}),
        resized_(io),
        deadline_(io),
        output_limit_(io) {}

  int Execute() {
    signals_.Begin();
    if (job_.has_terminals()) {
      resized_.add(SIGWINCH);
      AwaitResize();
    }
    Register();
    std::vector<launch::v1::Host> hosts;
    for (std::size_t i = 0; i < run_.hosts.size(); ++i) {
      hosts.push_back(ToMessage(run_.hosts[i], static_cast<HostIndex>(i)));
    }
    branch_.Adopt(hosts);
    io_.run();
    return exit_code_;
  }

 private:
  // For `muster ps` and `muster stop`; the run does not depend on it.
  void Register() {
    shown_ = {
        .run_id = run_.run_id,
        .pid = ::getpid(),
        .script = run_.command.front(),
        .ranks = base::Count(run_.hosts.size(), "host"),
        .state = RunState::kRunning,
        .since = std::chrono::floor<seconds>(std::chrono::system_clock::now()),
    };
    auto entry = RunRegistration::Register(RunsDirs(RunsPlaceOf(ReadEnvironment(environ))), shown_);
    if (entry.ok()) {
      entry_ = *std::move(entry);
    } else {
      Say(absl::StrCat("muster ps will not show this run: ", entry.status().message()));
    }
  }

  void AwaitResize() {
    resized_.async_wait([this](boost::system::error_code error, int) {
      if (error) return;
      branch_.Resize(TerminalsHere());
      AwaitResize();
    });
  }

  void OnNews(const HostNews& news) {
    for (const LaunchState::Action& action : launch_state_.On(news)) {
      std::visit([this](const auto& one) { Do(one); }, action);
    }
  }

  void Do(const LaunchState::Begin& begin) {
    branch_.Begin(run_.endpoint.empty() ? begin.endpoint : run_.endpoint);
  }

  void Do(const LaunchState::Say& say) { Say(say.sentence); }

  void Do(const LaunchState::Fail& fail) {
    if (closing_) return;
    Say(fail.sentence);
    Close(interrupted_ ? kInterruptedBase + *interrupted_ : kExitRendezvousFailed);
  }

  void Do(const LaunchState::ExpectEnd& expected) {
    // Whoever is stopped by a signal has a time limit already.
    if (interrupted_) return;
    AfterLimit(kVerdictLimit, [this, sentence = expected.sentence] {
      Say(sentence);
      Close(launch_state_.exit_code());
    });
  }

  void Do(const LaunchState::Finish&) {
    if (closing_) return;
    const HostIndex deciding = launch_state_.deciding_host();
    const int exit_code = launch_state_.exit_code();
    const auto report = reports_.find(deciding);
    if (report != reports_.end()) {
      console_.Write(worker::StreamKind::kStderr, report->second);
    } else if (exit_code > kInterruptedBase && !interrupted_) {
      // Who is killed reports nothing.
      Say(absl::StrCat("the node on ", run_.hosts[static_cast<std::size_t>(deciding)].Text(),
                       " was killed by signal ", exit_code - kInterruptedBase));
    }
    Close(exit_code);
  }

  void OnOutput(const Output& output) {
    const HostIndex host = output.host();
    if (host < 0 || static_cast<std::size_t>(host) >= run_.hosts.size()) return;
    switch (output.stream()) {
      case Output::STDOUT:
      case Output::STDERR:
        return Show(host, output);
      case Output::LOG:
        return Quote(host, output.data());
      case Output::REPORT:
        return KeepReport(host, output.data());
      default:
        return;
    }
  }

  // Whole lines; and of one whose end does not come, what there is.
  void Show(HostIndex host, const Output& output) {
    const auto kind = output.stream() == Output::STDOUT ? worker::StreamKind::kStdout
                                                        : worker::StreamKind::kStderr;
    WholeLines& lines = lines_[{host, kind}];
    console_.Write(kind, lines.Add(output.data()), &lines);
    if (!lines.rest().empty()) console_.ShowPart(kind, &lines, lines.rest());
  }

  // What an agent says, with the name of its host before each line. What several of them say alike
  // is shown once.
  void Quote(HostIndex host, const std::string& text) {
    const std::string name = run_.hosts[static_cast<std::size_t>(host)].Text();
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      // Behind the time and the process's number.
      const std::size_t mark = line.find("] ");
      const std::string said(line.substr(mark == absl::string_view::npos ? 0 : mark));
      const auto before = std::find_if(said_.begin(), said_.end(),
                                       [&](const auto& one) { return one.second == said; });
      if (before != said_.end() && before->first != host) continue;
      said_.emplace_back(host, said);
      if (said_.size() > kRemembered) said_.pop_front();
      console_.Write(worker::StreamKind::kStderr, absl::StrCat(name, ": ", line, "\n"));
    }
  }

  // Every node reports the same. Only those are kept that may be shown: that of the host that
  // serves, and the first.
  void KeepReport(HostIndex host, const std::string& text) {
    if (reports_.count(host) == 0 && !reports_.empty() && host != launch_state_.serving_host())
      return;
    std::string& report = reports_[host];
    if (report.size() < kMaxReport) report += text;
  }

  void Say(const std::string& sentence) {
    console_.Write(worker::StreamKind::kStderr, absl::StrCat("muster run: ", sentence, "\n"));
  }

  // So that a second `muster stop` only waits.
  void ShowStopping() {
    shown_.state = RunState::kStopping;
    if (!entry_) return;
    if (const absl::Status status = entry_->Update(shown_); !status.ok()) {
      Say(absl::StrCat("muster ps will not show how this run ends: ", status.message()));
    }
  }

  void OnStopSignal(int signal) {
    const bool again = interrupted_.has_value();
    if (!again) {
      interrupted_ = signal;
      ShowStopping();
    }
    if (closing_) return again ? GiveUp() : LimitOutput();
    if (!launch_state_.has_begun()) return Close(kInterruptedBase + signal);
    branch_.Signal(signal, /*ends_job=*/true);
    if (again || run_.shutdown_timeout == milliseconds::max()) return;
    AfterLimit(StopLimit(), [this] {
      had_their_time_ = true;
      Close(kInterruptedBase + *interrupted_);
    });
  }

  // Unless it is endless: workers may take the one half of the time, and then what they have left
  // running the other.
  milliseconds StopLimit() const { return 2 * run_.shutdown_timeout + kEndLimit; }

  void OnSuspend() {
    branch_.Signal(SIGTSTP, /*ends_job=*/false);
    Say(absl::StrCat(
        "SIGTSTP: the workers on all hosts are stopped; this process keeps running, because the "
        "hosts would otherwise consider it dead: press Ctrl-Z again, or run kill -CONT ",
        ::getpid(), ", continues them"));
  }

  void OnResume() {
    branch_.Signal(SIGCONT, /*ends_job=*/false);
    Say("the workers on all hosts are continued");
  }

  template <typename Then>
  void AfterLimit(milliseconds limit, Then then) {
    deadline_.expires_after(limit);
    deadline_.async_wait([this, then](boost::system::error_code error) {
      if (!error && !closing_) then();
    });
  }

  void Close(int exit_code) {
    closing_ = true;
    exit_code_ = exit_code;
    deadline_.cancel();
    if (interrupted_) LimitOutput();
    const milliseconds limit = had_their_time_ ? kLastLimit
                               : run_.shutdown_timeout == milliseconds::max()
                                   ? milliseconds(std::chrono::hours(24))
                                   : StopLimit();
    branch_.Close(limit, [this] { console_.WhenWritten([this] { io_.stop(); }); });
  }

  // A run that a signal has asked to end must not depend on a reader who may never come.
  void LimitOutput() {
    output_limit_.expires_after(run_.shutdown_timeout == milliseconds::max()
                                    ? milliseconds(std::chrono::hours(24))
                                    : StopLimit() + kReaderLimit);
    output_limit_.async_wait([this](boost::system::error_code error) {
      if (!error) GiveUp();
    });
  }

  void GiveUp() {
    console_.GiveUp();
    io_.stop();
  }

  bool HasRoom() {
    for (const auto kind : {worker::StreamKind::kStdout, worker::StreamKind::kStderr}) {
      worker::ConsoleSink& sink = console_.sink(kind);
      if (sink.HasRoom()) continue;
      if (!std::exchange(awaits_room_, true)) {
        sink.WhenRoom([this] {
          awaits_room_ = false;
          branch_.Resume();
        });
      }
      return false;
    }
    return true;
  }

  boost::asio::io_context& io_;
  const HostsRun run_;
  const launch::v1::Job job_;
  worker::Console console_;
  RunInfo shown_;
  std::unique_ptr<RunRegistration> entry_;
  Signals signals_;
  Suspension suspension_;
  LaunchState launch_state_;
  Branch branch_;
  boost::asio::signal_set resized_;
  // For what is to happen if the nodes do not end by themselves.
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer output_limit_;
  // Its places are what the console tells their writers apart by.
  std::map<std::pair<HostIndex, worker::StreamKind>, WholeLines> lines_;
  std::map<HostIndex, std::string> reports_;
  // What agents have said last.
  std::deque<std::pair<HostIndex, std::string>> said_;
  std::optional<int> interrupted_;
  bool awaits_room_ = false;
  bool closing_ = false;
  // The time that hosts have to end in is over.
  bool had_their_time_ = false;
  int exit_code_ = kExitSuccess;
};

}  // namespace

int LaunchHosts(HostsRun run) {
  const auto token = TokenFor(run);
  if (!token.ok()) {
    std::fprintf(stderr, "muster run: %s\n", std::string(token.status().message()).c_str());
    return kExitBadInput;
  }
  boost::asio::io_context io(1);
  return Launch(io, std::move(run), *token).Execute();
}

}  // namespace muster::launcher
