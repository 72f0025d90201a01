#include "launcher/remote/host_query.h"

#include <algorithm>
#include <csignal>
#include <cstddef>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/text.h"
#include "launcher/remote/branch.h"
#include "launcher/remote/launch_wire.h"
#include "launcher/remote/own_program.h"
#include "proto/launch.pb.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::launcher {
namespace {

using launch::v1::Output;

constexpr std::size_t kMaxAnswer = 4 * 1024 * 1024;
constexpr std::size_t kMaxLine = 1000;
// How long hosts have to stop after the last answer.
constexpr std::chrono::seconds kQueryEndLimit(5);

launch::v1::Job JobOf(const HostQuery& query) {
  launch::v1::Job job;
  job.set_id(base::RandomName(16));
  job.mutable_question()->Add(query.command.begin(), query.command.end());
  // min = max: unreachable hosts are given up.
  const int count = static_cast<int>(query.hosts.size());
  job.set_min_nodes(count);
  job.set_max_nodes(count);
  job.set_fanout(query.fanout);
  job.set_answer_timeout_ms(query.timeout.count());
  job.set_launch_with(query.launch_with);
  job.set_ssh_control_persist_ms(query.ssh_control_persist.count());
  job.set_ships(query.ships);
  return job;
}

class Asking {
 public:
  explicit Asking(const HostQuery& query)
      : query_(query),
        job_(JobOf(query)),
        answers_(query.hosts.size()),
        errors_(query.hosts.size()),
        is_there_(query.hosts.size()),
        is_done_(query.hosts.size()),
        why_not_yet_(query.hosts.size()),
        limit_(io_),
        branch_(io_, job_, OwnProgram(),
                {.on_news = [this](const HostNews& news) { OnNews(news); },
                 .on_output = [this](const Output& output) { OnOutput(output); },
                 .has_room = [] { return true; }}) {}

  std::vector<HostAnswer> Ask() {
    std::vector<launch::v1::Host> hosts;
    for (std::size_t i = 0; i < query_.hosts.size(); ++i) {
      hosts.push_back(ToMessage(query_.hosts[i], static_cast<HostIndex>(i)));
    }
    // Each host gets the question as soon as it answers.
    branch_.Begin("");
    branch_.Adopt(hosts);
    if (hosts.empty()) return {};
    // Expires after the tree's own limit, whose messages have causes.
    limit_.expires_after(query_.timeout);
    limit_.async_wait([this](const boost::system::error_code& error) {
      if (!error) EndAll();
    });
    io_.run();
    return std::move(answers_);
  }

 private:
  bool IsKnown(HostIndex host) const {
    return host >= 0 && static_cast<std::size_t>(host) < answers_.size();
  }

  void OnNews(const HostNews& news) {
    if (!IsKnown(news.host)) return;
    const auto host = static_cast<std::size_t>(news.host);
    HostAnswer& answer = answers_[host];
    if (is_done_[host]) return;
    switch (news.what) {
      case HostNews::What::kAnswered:
        is_there_[host] = true;
        return;
      case HostNews::What::kNotYet:
        why_not_yet_[host] = news.reason;
        return;
      case HostNews::What::kLost:
        // The command runs again, and its whole output with it.
        is_there_[host] = false;
        why_not_yet_[host] = news.reason;
        answer = {};
        errors_[host].clear();
        return;
      case HostNews::What::kUnreachable:
        answer = {.failure = absl::StrCat("cannot be reached: ", news.reason)};
        break;
      case HostNews::What::kEnded:
        answer.exit_code = news.exit_code;
        for (const absl::string_view line :
             absl::StrSplit(errors_[host], '\n', absl::SkipEmpty())) {
          answer.said.push_back(rendezvous::OneLine({line.data(), line.size()}, kMaxLine));
        }
        break;
    }
    Finish(host);
  }

  // The timeout expired, perhaps because a hung file system blocks the command.
  void EndAll() {
    const std::string within = absl::StrCat("within ", base::Seconds(query_.timeout));
    for (std::size_t host = 0; host < answers_.size(); ++host) {
      if (is_done_[host]) continue;
      const std::string& why = why_not_yet_[host];
      answers_[host] = {
          .failure = is_there_[host] ? absl::StrCat("has not reported ", within)
                     : why.empty() ? absl::StrCat("cannot be reached: it has not answered ", within)
                                   : absl::StrCat("cannot be reached: ", why)};
      Finish(host);
    }
  }

  void Finish(std::size_t host) {
    is_done_[host] = true;
    if (std::find(is_done_.begin(), is_done_.end(), false) != is_done_.end()) return;
    limit_.cancel();
    branch_.Close(kQueryEndLimit, [this] { io_.stop(); });
  }

  void OnOutput(const Output& output) {
    if (!IsKnown(output.host())) return;
    HostAnswer& answer = answers_[static_cast<std::size_t>(output.host())];
    std::string& text = output.stream() == Output::STDOUT
                            ? answer.out
                            : errors_[static_cast<std::size_t>(output.host())];
    text.append(output.data(), 0, kMaxAnswer - std::min(kMaxAnswer, text.size()));
  }

  const HostQuery& query_;
  const launch::v1::Job job_;
  boost::asio::io_context io_{1};
  std::vector<HostAnswer> answers_;
  // Their stderr so far.
  std::vector<std::string> errors_;
  std::vector<bool> is_there_;
  std::vector<bool> is_done_;
  // The cause of the last failed attempt.
  std::vector<std::string> why_not_yet_;
  boost::asio::steady_timer limit_;
  Branch branch_;
};

}  // namespace

std::vector<HostAnswer> AskHosts(const HostQuery& query) {
  std::signal(SIGPIPE, SIG_IGN);
  return Asking(query).Ask();
}

}  // namespace muster::launcher
