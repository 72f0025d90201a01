#include "launcher/commands/watch_status.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/watch_view.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/client/job_watch.h"

namespace muster::launcher {
namespace {

constexpr char kCommand[] = "muster status";
constexpr int kNoSuchJob = 1;

bool CanRedraw() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
         absl::string_view(term) != "dumb";
}

Redrawing::Size TerminalSize() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {.columns = size.ws_col, .rows = size.ws_row};
}

int ExitCodeOf(rendezvous::VerdictKind how) {
  switch (how) {
    case rendezvous::VerdictKind::kSucceeded:
      return kExitSuccess;
    case rendezvous::VerdictKind::kWorkerFailed:
      return kExitWorkerFailed;
    case rendezvous::VerdictKind::kJoinTimeout:
    case rendezvous::VerdictKind::kClosed:
      break;
  }
  return kExitRendezvousFailed;
}

class StatusWatch final : private rendezvous::JobWatch::Listener {
 public:
  StatusWatch(boost::asio::io_context& io, const rendezvous::DaemonOptions& daemon,
              const std::string& run_id, bool json)
      : io_(io), of_one_job_(!run_id.empty()), json_(json), resized_(io) {
    if (!json && CanRedraw()) {
      redrawing_.emplace();
      resized_.add(SIGWINCH);
      AwaitResize();
    }
    rendezvous::JobWatch::Listener& listener = *this;
    watch_.emplace(io, daemon, run_id, listener);
  }

  // Once the loop has stopped.
  int exit_code() const { return exit_code_; }

 private:
  void OnJobs(const rendezvous::WatchedJobs& watched) override {
    is_in_touch_ = true;
    for (const rendezvous::JobEnd& end : watched.ended) {
      if (of_one_job_) exit_code_ = ExitCodeOf(end.kind);
    }
    if (watched.unchanged && !redrawing_) return;
    if (json_) return Print(WatchJson(watched));
    text_ = WatchText(watched, of_one_job_, absl::LocalTimeZone());
    if (redrawing_) return Redraw();
    Print(absl::StrCat(std::exchange(has_printed_, true) ? "\n" : "", text_));
  }

  void OnOutOfTouch(const std::string& why) override {
    // Once for an outage.
    if (!std::exchange(is_in_touch_, false)) return;
    const std::string trouble = absl::StrCat(why, "; trying again");
    if (redrawing_) {
      absl::StrAppend(&text_, "\n", trouble, "\n");
      return Redraw();
    }
    std::fprintf(stderr, "%s: %s\n", kCommand, trouble.c_str());
  }

  void OnOver(const absl::Status& status) override {
    if (!status.ok()) {
      std::fprintf(stderr, "%s: %s\n", kCommand, std::string(status.message()).c_str());
      exit_code_ = absl::IsNotFound(status) ? kNoSuchJob : kExitRendezvousFailed;
    }
    io_.stop();
  }

  void Redraw() { Print(redrawing_->Draw(text_, TerminalSize())); }

  void AwaitResize() {
    resized_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      if (!text_.empty()) Redraw();
      AwaitResize();
    });
  }

  void Print(const std::string& text) {
    if (Answer(kCommand, text) == kExitSuccess) return;
    exit_code_ = kExitNodeFailed;
    io_.stop();
  }

  boost::asio::io_context& io_;
  const bool of_one_job_;
  const bool json_;
  std::optional<Redrawing> redrawing_;  // on a terminal
  boost::asio::signal_set resized_;
  bool is_in_touch_ = true;
  bool has_printed_ = false;
  std::string text_;  // that is shown
  int exit_code_ = kExitSuccess;
  std::optional<rendezvous::JobWatch> watch_;
};

}  // namespace

int WatchStatus(const rendezvous::DaemonOptions& daemon, const std::string& run_id, bool json) {
  // Never destroyed: gRPC's threads may post while the program ends.
  auto* const io = new boost::asio::io_context(1);
  const StatusWatch watch(*io, daemon, run_id, json);
  io->run();
  return watch.exit_code();
}

}  // namespace muster::launcher
