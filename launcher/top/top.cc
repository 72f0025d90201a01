#include "launcher/top/top.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "base/async/timer.h"
#include "launcher/top/rank_log.h"
#include "launcher/top/state.h"
#include "launcher/top/terminal.h"
#include "launcher/top/view.h"
#include "rendezvous/client/job_watch.h"
#include "rendezvous/client/log_reader.h"

namespace muster::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// The shortest interval between drawings of output, and between new readings while the user moves
// through the ranks.
constexpr std::chrono::milliseconds kLogPause(100);

class Top final : private rendezvous::JobWatch::Listener {
 public:
  Top(boost::asio::io_context& io, rendezvous::DaemonOptions daemon, const std::string& run_id)
      : io_(io),
        daemon_(std::move(daemon)),
        // Set up before the terminal: ncurses installs handlers for signals that have none.
        ends_(io, SIGINT, SIGTERM, SIGHUP),
        second_(io),
        reading_soon_(io),
        log_soon_(io),
        state_(BeginTop(ToString(daemon_.endpoint), run_id)) {
    // Ctrl-Backslash.
    ends_.add(SIGQUIT);
  }

  TopEnd Run() {
    auto terminal = Terminal::Open(io_, {.on_key = [this](const Key& key) { OnKey(key); },
                                         .on_change = [this] { Draw(); },
                                         .on_gone = [this] { End({.signal = SIGHUP}); }});
    if (!terminal.ok()) return {.status = terminal.status()};
    terminal_ = *std::move(terminal);
    ends_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (!error) End({.signal = signal});
    });
    Watch();
    Draw();
    io_.run();
    terminal_.reset();
    return end_;
  }

 private:
  void OnJobs(const rendezvous::WatchedJobs& watched) override {
    launcher::OnJobs(state_, watched, Clock::now());
    ReadLog();
    Draw();
  }

  void OnOutOfTouch(const std::string& why) override {
    launcher::OnOutOfTouch(state_, why, Clock::now());
    Draw();
  }

  void OnOver(const absl::Status& status) override {
    const bool is_gone = absl::IsNotFound(status) && state_.is_known;
    if (!status.ok() && !is_gone) return End({.status = status});
    // Keep the job's result on the screen; the job may begin again, and there may be others.
    if (is_gone) launcher::OnJobs(state_, {}, Clock::now());
    state_.watched.clear();
    ReadLog();
    Watch();
  }

  void OnKey(const Key& key) {
    const std::string watched = state_.watched;
    if (PressKey(state_, key, terminal_->size())) return End({});
    if (state_.watched != watched) Watch();
    ReadLog();
    Draw();
  }

  // Starts or stops reading to match the state.
  void ReadLog() {
    const int wanted = state_.log ? state_.readings : 0;
    if (wanted == reading_) return;
    reading_ = wanted;
    reader_.reset();
    if (wanted == 0) return reading_soon_.Cancel();
    reading_soon_.At(reading_began_ + kLogPause, [this] {
      if (state_.log) BeginReading();
    });
  }

  void BeginReading() {
    reading_began_ = Clock::now();
    reader_.emplace(io_, daemon_, RequestFor(*state_.log), rendezvous::LogFollower::kComesBackFor,
                    rendezvous::LogFollower::Handlers{
                        .on_part =
                            [this, number = reading_](const rendezvous::LogPart& part) {
                              OnLog(state_, number, part);
                              DrawLogSoon();
                            },
                        .on_outage =
                            [this, number = reading_](const std::string& why) {
                              OnLogAway(state_, number, why);
                              DrawLogSoon();
                            },
                        .on_end =
                            [this, number = reading_](const absl::Status& status) {
                              OnLogOver(state_, number, status);
                              DrawLogSoon();
                            }});
  }

  // Draws soon, together with what arrives until then.
  void DrawLogSoon() {
    if (log_soon_.waits()) return;
    log_soon_.At(log_drawn_ + kLogPause, [this] {
      log_drawn_ = Clock::now();
      Draw();
    });
  }

  void Watch() {
    rendezvous::JobWatch::Listener& listener = *this;
    watch_.emplace(io_, daemon_, state_.watched, listener);
  }

  void Draw() {
    if (terminal_ == nullptr) return;
    terminal_->Draw(DrawTop(state_, terminal_->size(), Clock::now()));
    AwaitSecond();
  }

  // Draws every second while running times are visible.
  void AwaitSecond() {
    if (state_.place == TopState::Place::kJobs || !state_.trouble.empty() || !state_.is_known) {
      return second_.Cancel();
    }
    second_.After(std::chrono::seconds(1), [this] { Draw(); });
  }

  void End(TopEnd end) {
    end_ = std::move(end);
    io_.stop();
  }

  boost::asio::io_context& io_;
  const rendezvous::DaemonOptions daemon_;
  boost::asio::signal_set ends_;
  base::Timer second_;
  // For the next reading, and for drawing the output of the current one.
  base::Timer reading_soon_;
  base::Timer log_soon_;
  TopState state_;
  TopEnd end_;
  std::unique_ptr<Terminal> terminal_;
  std::optional<rendezvous::JobWatch> watch_;
  // The number of state_.log's reading; 0: none.
  int reading_ = 0;
  Clock::time_point reading_began_{};
  Clock::time_point log_drawn_{};
  std::optional<rendezvous::LogFollower> reader_;
};

}  // namespace

TopEnd RunTop(const rendezvous::DaemonOptions& daemon, const std::string& run_id) {
  // Never destroyed: gRPC's threads may post while the program exits.
  auto* const io = new boost::asio::io_context(1);
  return Top(*io, daemon, run_id).Run();
}

}  // namespace muster::launcher
