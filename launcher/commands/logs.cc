#include "launcher/commands/logs.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/phrases.h"
#include "base/print_out.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/logs_args.h"
#include "launcher/commands/rendezvous_args.h"
#include "launcher/environment.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/client/log_follower.h"
#include "worker/output/line_prefix.h"
#include "worker/output/line_prefixer.h"

namespace muster::launcher {
namespace {

using rendezvous::LogNotice;
using rendezvous::LogPart;
using rendezvous::LogRound;
using rendezvous::LogStream;
using rendezvous::LogText;

// There is no such job, or it is not all there.
constexpr int kExitNotAll = 1;

void Remark(const std::string& sentence) {
  std::fprintf(stderr, "muster logs: %s\n", sentence.c_str());
}

// Prints as it reads: who takes stdout slowly makes the daemon, and so the nodes, wait.
class LogPrinter {
 public:
  LogPrinter(boost::asio::io_context& io, const rendezvous::DaemonOptions& daemon,
             const LogsArgs& args)
      : io_(io),
        one_rank_(args.one_rank),
        follows_(args.request.extent.follow),
        reader_(std::in_place, io, daemon, args.request, rendezvous::LogFollower::kComesBackFor,
                rendezvous::LogFollower::Handlers{
                    .on_part =
                        [this](const LogPart& part) {
                          std::visit([this](const auto& kind) { Show(kind); }, part);
                        },
                    .on_outage = [this](const std::string& why) { OnOutage(why); },
                    .on_end = [this](const absl::Status& status) { OnEnd(status); }}) {}

  int exit_code() const { return exit_code_; }

 private:
  void Show(const LogText& text) {
    if (one_rank_) return Print(text.bytes);
    const auto [prefixer, is_new] = prefixers_.try_emplace(
        {text.rank, text.stream}, worker::LinePrefix(absl::StrCat("[", text.rank, "]: "), 0));
    Print(prefixer->second.Feed(text.bytes, std::chrono::system_clock::now()));
  }

  void Show(const LogNotice& notice) { Remark(notice.sentence); }

  void Show(const LogRound& round) {
    FinishLines();
    if (std::exchange(any_round_, true)) {
      Remark(absl::StrCat("round ", round.round, " begins: ", round.reason));
    }
  }

  // Lines that their workers have not ended.
  void FinishLines() {
    for (auto& [whose, prefixer] : std::exchange(prefixers_, {})) {
      Print(prefixer.Finish(std::chrono::system_clock::now()));
    }
  }

  void Print(const std::string& text) {
    if (text.empty() || base::PrintOut("muster logs", text)) return;
    exit_code_ = kExitNodeFailed;
    reader_.reset();
    io_.stop();
  }

  void OnOutage(const std::string& why) {
    away_since_ = absl::Now();
    Remark(absl::StrCat(why, "; this goes on from here once it, or another that takes over, is ",
                        "there, and waits for ",
                        base::Seconds(rendezvous::LogFollower::kComesBackFor)));
  }

  void OnEnd(const absl::Status& status) {
    FinishLines();
    if (exit_code_ != kExitSuccess || status.ok()) return;
    // It has not come back in time, or what is there does not know where this reader was.
    const bool goes_on = follows_ && any_round_ && absl::IsUnavailable(status);
    Remark(goes_on ? absl::StrCat(status.message(), "; once it is back, -f --since=",
                                  absl::FormatTime("%H:%M:%S", away_since_.value_or(absl::Now()),
                                                   absl::LocalTimeZone()),
                                  " goes on from here")
                   : std::string(status.message()));
    switch (status.code()) {
      case absl::StatusCode::kInvalidArgument:
        exit_code_ = kExitBadInput;
        break;
      case absl::StatusCode::kNotFound:
      case absl::StatusCode::kOutOfRange:
      case absl::StatusCode::kFailedPrecondition:
      case absl::StatusCode::kDataLoss:
      case absl::StatusCode::kDeadlineExceeded:
        exit_code_ = kExitNotAll;
        break;
      default:
        exit_code_ = kExitRendezvousFailed;
    }
  }

  boost::asio::io_context& io_;
  const bool one_rank_;
  const bool follows_;
  std::map<std::pair<int, LogStream>, worker::LinePrefixer> prefixers_;
  bool any_round_ = false;
  std::optional<absl::Time> away_since_;  // when the daemon was lost last
  int exit_code_ = kExitSuccess;
  std::optional<rendezvous::LogFollower> reader_;
};

}  // namespace

int LogsCommand(const std::vector<std::string>& args) {
  const absl::StatusOr<LogsArgs> parsed =
      ParseLogsArgs(args, ReadEnvironment(environ), absl::Now(), absl::LocalTimeZone());
  if (!parsed.ok()) {
    Remark(std::string(parsed.status().message()));
    return kExitBadInput;
  }
  if (parsed->help) return Answer("muster logs", LogsHelp());
  const auto daemon = DaemonOf(parsed->endpoint, parsed->token);
  if (!daemon.ok()) {
    Remark(std::string(daemon.status().message()));
    return kExitBadInput;
  }
  boost::asio::io_context io(1);
  LogPrinter printer(io, *daemon, *parsed);
  io.run();
  return printer.exit_code();
}

}  // namespace muster::launcher
