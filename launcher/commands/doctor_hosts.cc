#include "launcher/commands/doctor_hosts.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "base/random_name.h"
#include "launcher/doctor/consultation.h"
#include "launcher/doctor/probe.h"
#include "launcher/tree/branch.h"
#include "launcher/tree/host_wire.h"
#include "launcher/tree/own_program.h"
#include "proto/launch.pb.h"

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
  job.set_ssh_persist_ms(0);
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
        consultation_(NamesOf(run), [] { return base::RandomName(kProbeKeySize); }),
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
    return {.report = consultation_.Result(), .ways = consultation_.ways()};
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
            consultation_.OnGone(news.host, absl::StrCat("it cannot be reached: ", news.reason)));
      case HostNews::What::kLost:
        return Follow(consultation_.OnGone(news.host, absl::StrCat("it was lost: ", news.reason)));
      case HostNews::What::kEnded:
        return Follow(consultation_.OnGone(
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
      Follow(consultation_.OnLine(host, line));
    }
    if (rest.size() > kMaxHostLine) rest.clear();
  }

  // Tells the hosts what is next, or ends.
  void Follow(const std::optional<std::string>& next) {
    if (is_closing_) return;
    if (next) {
      if (consultation_.stage() == 1) {
        std::fprintf(stderr, "muster doctor: measuring the ways between them, %s\n",
                     base::Count(consultation_.stages(), "stage").c_str());
      }
      Arm(kStageLimit);
      branch_.Tell(*next);
    }
    if (consultation_.is_over()) Close();
  }

  void Arm(milliseconds limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([this](boost::system::error_code error) {
      if (!error) Follow(consultation_.OnDeadline());
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
  Consultation consultation_;
  // What hosts have written of a line that is not whole yet, and what they said besides.
  std::vector<std::string> lines_;
  std::vector<std::string> words_;
  Branch branch_;
  boost::asio::steady_timer deadline_;
  bool is_closing_ = false;
};

}  // namespace

HostsReport ExamineHosts(const HostsRun& run, const std::string& token) {
  boost::asio::io_context io(1);
  return HostsExamination(io, run, token).Execute();
}

}  // namespace muster::launcher
