#include "launcher/commands/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/json.h"
#include "base/program.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"
#include "launcher/doctor/host_survey.h"
#include "launcher/doctor/network.h"
#include "launcher/doctor/probe.h"
#include "launcher/machine/network.h"
#include "launcher/remote/branch.h"
#include "launcher/remote/launch_wire.h"
#include "launcher/remote/own_program.h"
#include "proto/launch.pb.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

using launch::v1::Output;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What a host has, once it is connected to, to say what is wrong with it: its Python and its DNS
// may be slow.
constexpr seconds kReportLimit(60);
// What the hosts of a stage have: longer than any measurement takes.
constexpr seconds kStageLimit(25);
constexpr milliseconds kEndOfHosts(5000);
// Far more than a report has; what comes from a host is not trusted to end.
constexpr std::size_t kMaxHostLine = std::size_t{1} << 20;

launch::v1::Job DoctorJob(const HostsRun& run, const std::string& token) {
  launch::v1::Job job;
  job.set_id(base::RandomName(16));
  job.set_run_id(run.run_id);
  job.set_token(token);
  job.set_dialect("doctor");
  job.mutable_flags()->Add(run.flags.begin(), run.flags.end());
  job.mutable_command()->Add(run.command.begin(), run.command.end());
  job.mutable_environment()->Add(run.environment.begin(), run.environment.end());
  job.set_directory(run.directory);
  job.set_min_nodes(static_cast<int>(run.hosts.size()));
  job.set_max_nodes(static_cast<int>(run.hosts.size()));
  // For the port that each host holds for one.
  job.set_uses_rendezvous(true);
  job.set_fanout(run.fanout);
  job.set_answer_timeout_ms(run.answer_timeout.count());
  job.set_launch_with(run.launch_with);
  // Whether one can log in is to be seen.
  job.set_ssh_control_persist_ms(0);
  job.set_ships(run.ships);
  return job;
}

std::vector<std::string> NamesOf(const HostsRun& run) {
  std::vector<std::string> names;
  for (const Host& host : run.hosts) names.push_back(host.Text());
  return names;
}

class HostsExamination {
 public:
  HostsExamination(boost::asio::io_context& io, const HostsRun& run, const std::string& token)
      : io_(io),
        run_(run),
        job_(DoctorJob(run, token)),
        host_survey_(NamesOf(run), [] { return base::RandomName(kProbeKeySize); }),
        lines_(run.hosts.size()),
        words_(run.hosts.size()),
        branch_(io, job_, OwnProgram(),
                {.on_news = [this](const HostNews& news) { OnNews(news); },
                 .on_output = [this](const Output& output) { OnOutput(output); },
                 .has_room = [] { return true; }}),
        deadline_(io) {}

  HostsReport Execute() {
    std::fprintf(stderr, "muster doctor: asking %s\n",
                 base::Count(run_.hosts.size(), "host").c_str());
    std::vector<launch::v1::Host> hosts;
    for (std::size_t i = 0; i < run_.hosts.size(); ++i) {
      hosts.push_back(ToMessage(run_.hosts[i], static_cast<HostIndex>(i)));
    }
    Arm(run_.answer_timeout + kReportLimit);
    branch_.Adopt(hosts);
    branch_.Begin("");
    io_.run();
    return {.report = host_survey_.Result(), .links = host_survey_.links()};
  }

 private:
  void OnNews(const HostNews& news) {
    // What ends now was asked to.
    if (is_closing_) return;
    if (news.host < 0 || static_cast<std::size_t>(news.host) >= run_.hosts.size()) return;
    switch (news.what) {
      case HostNews::What::kAnswered:
      case HostNews::What::kNotYet:
        return;
      case HostNews::What::kUnreachable:
        return Follow(
            host_survey_.OnGone(news.host, absl::StrCat("it cannot be reached: ", news.reason)));
      case HostNews::What::kLost:
        return Follow(host_survey_.OnGone(news.host, absl::StrCat("it was lost: ", news.reason)));
      case HostNews::What::kEnded:
        return Follow(host_survey_.OnGone(
            news.host, absl::StrCat("its doctor ended with exit code ", news.exit_code,
                                    words_[static_cast<std::size_t>(news.host)])));
    }
  }

  void OnOutput(const Output& output) {
    const HostIndex host = output.host();
    if (host < 0 || static_cast<std::size_t>(host) >= run_.hosts.size()) return;
    if (output.stream() != Output::STDOUT) {
      // Why it ends, if it does.
      std::string& words = words_[static_cast<std::size_t>(host)];
      if (words.empty()) words = absl::StrCat(": ", output.data().substr(0, 200));
      return;
    }
    std::string& rest = lines_[static_cast<std::size_t>(host)];
    rest += output.data();
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      const std::string line = rest.substr(0, end);
      rest.erase(0, end + 1);
      Follow(host_survey_.OnLine(host, line));
    }
    if (rest.size() > kMaxHostLine) rest.clear();
  }

  // Tells the hosts what is next, or ends.
  void Follow(const std::optional<std::string>& next) {
    if (is_closing_) return;
    if (next) {
      if (host_survey_.stage() == 1) {
        std::fprintf(stderr, "muster doctor: measuring the links between them, %s\n",
                     base::Count(host_survey_.stages(), "stage").c_str());
      }
      Arm(kStageLimit);
      branch_.Tell(*next);
    }
    if (host_survey_.is_over()) Close();
  }

  void Arm(milliseconds limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([this](boost::system::error_code error) {
      if (!error) Follow(host_survey_.OnDeadline());
    });
  }

  void Close() {
    is_closing_ = true;
    deadline_.cancel();
    branch_.Close(kEndOfHosts, [this] { io_.stop(); });
  }

  boost::asio::io_context& io_;
  const HostsRun& run_;
  const launch::v1::Job job_;
  HostSurvey host_survey_;
  // What hosts have written of a line that is not whole yet, and what they said besides.
  std::vector<std::string> lines_;
  std::vector<std::string> words_;
  Branch branch_;
  boost::asio::steady_timer deadline_;
  bool is_closing_ = false;
};

// How long a measurement by another host is waited for: longer than that host waits for an answer.
constexpr std::chrono::milliseconds kAwaited(4500);

bool Say(const base::Json& json) {
  return base::PrintOut("muster doctor", base::JsonText(json) + "\n");
}

// The numeric address of this machine that `host` means, as the others reach it.
std::string OwnAddress(const std::string& host) {
  const std::vector<std::string> own = InterfaceAddresses();
  for (const std::string& address : Resolve(host).addresses) {
    if (std::find(own.begin(), own.end(), address) != own.end()) return address;
  }
  return own.empty() ? "" : own.front();
}

// Does the part of host `self` in one encounter; nothing, where it has none.
void TakePart(const base::Json& one, int self, int stage, const std::optional<ProbePort>& port) {
  const std::string key = one.value("key", "");
  if (one.value("from", -1) == self) {
    const LinkMeasurement link =
        Probe(one.value("address", ""), static_cast<std::uint16_t>(one.value("port", 0)), key);
    Say({{"stage", stage}, {"link", LinkMeasurementJson(link)}});
  } else if (one.value("to", -1) == self) {
    const Arrival arrival = port ? port->Receive(key, kAwaited) : Arrival();
    Say({{"stage", stage}, {"arrival", ArrivalJson(arrival)}});
  }
}

}  // namespace

HostsReport ExamineHosts(const HostsRun& run, const std::string& token) {
  boost::asio::io_context io(1);
  return HostsExamination(io, run, token).Execute();
}

int DoctorNode(const std::string& place, Report report) {
  const std::vector<std::string> parts = absl::StrSplit(place, absl::MaxSplits('@', 1));
  int self = -1;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &self)) return kExitBadInput;
  std::optional<ProbePort> port;
  std::string address;
  if (const auto endpoint = rendezvous::ParseEndpoint(parts[1], 0); endpoint.ok()) {
    address = OwnAddress(endpoint->host);
    auto opened = ProbePort::Open(address, endpoint->port);
    if (opened.ok()) port.emplace(*std::move(opened));
  }
  if (!Say({{"report", ReportJson(report)},
            {"address", address},
            {"port", port ? port->port() : 0}})) {
    return kExitNodeFailed;
  }
  // From the connection of the launch tree: what comes is whole lines of JSON by the same program.
  std::string line;
  while (std::getline(std::cin, line)) {
    const base::Json json = base::ParseJson(line);
    if (!json.is_object() || !json.contains("encounters")) continue;
    const int stage = json.value("stage", -1);
    for (const base::Json& one : json["encounters"]) TakePart(one, self, stage, port);
  }
  return kExitSuccess;
}

}  // namespace muster::launcher
