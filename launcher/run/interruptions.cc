#include "launcher/run/interruptions.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include <spdlog/spdlog.h>
#include <boost/asio/buffer.hpp>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::launcher {
namespace {

// Longer than any order; what is longer is none.
constexpr std::size_t kMaxLine = 16;

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Of all nodes of a job together.
constexpr std::chrono::milliseconds kBetweenQuestions = std::chrono::seconds(1);
constexpr std::chrono::seconds kAnswerLimit(30);
constexpr std::size_t kMaxNodeText = 64 * 1024;

constexpr std::size_t kMaxReason = 200;

// The rest of the line behind the field's name; empty: there is no such field.
absl::string_view RestBehind(absl::string_view shown, absl::string_view field) {
  for (absl::string_view line : absl::StrSplit(shown, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, field)) return line.substr(field.size());
  }
  return {};
}

}  // namespace

std::optional<int> TakeOrdersFd(Environment& environment) {
  return TakeInheritedFd(environment, kOrdersVariable);
}

std::string StopOrder(int signal) {
  return absl::StrCat(signal, "\n");
}

StopOrders::StopOrders(boost::asio::io_context& io, int fd, std::function<void(int)> on_stop)
    : input_(io, fd), on_stop_(std::move(on_stop)) {}

void StopOrders::Await() {
  input_.async_read_some(boost::asio::buffer(piece_),
                         [this](boost::system::error_code error, std::size_t size) {
                           if (error == boost::asio::error::operation_aborted) return;
                           Hear(size);
                           if (!error) Await();
                         });
}

void StopOrders::Hear(std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (piece_[i] != '\n') {
      if (line_.size() < kMaxLine) line_ += piece_[i];
      continue;
    }
    int signal = 0;
    const bool is_order = absl::SimpleAtoi(std::exchange(line_, ""), &signal);
    if (is_order && signal > 0 && signal < NSIG) on_stop_(signal);
  }
}

Signals::Signals(boost::asio::io_context& io, const Options& options,
                 std::function<void(int)> on_stop, std::function<void(int)> on_pass)
    : stop_signals_(options.stop),
      in_slurm_(options.in_slurm),
      stop_(io),
      pass_(io),
      on_stop_(std::move(on_stop)),
      on_pass_(std::move(on_pass)) {
  std::vector<int> passed = {SIGUSR1, SIGUSR2};
  for (const int signal : options.stop) {
    passed.erase(std::remove(passed.begin(), passed.end(), signal), passed.end());
  }
  if (options.orders_fd) {
    orders_.emplace(io, *options.orders_fd, [this](int signal) { OnRequest(signal, ordered_); });
  }
  for (const int signal : passed) {
    if (!IsIgnored(signal)) pass_.add(signal);
  }
  AwaitPass();
}

void Signals::Begin() {
  for (const int signal : stop_signals_) {
    if (signal != SIGHUP || !IsIgnored(signal)) stop_.add(signal);
  }
  AwaitStop();
  if (orders_) orders_->Await();
}

void Signals::OnRequest(int signal, int& count) {
  ++count;
  const bool is_another = signal == SIGINT && last_ != SIGINT;
  if (count <= told_ && !is_another) return;
  told_ = count = std::max(count, told_ + 1);
  last_ = signal;
  on_stop_(signal);
}

void Signals::AwaitStop() {
  stop_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    AwaitStop();
    if (in_slurm_ && signal == SIGTERM && std::exchange(had_sigterm_, true)) return;
    OnRequest(signal, signalled_);
  });
}

void Signals::AwaitPass() {
  pass_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    AwaitPass();
    on_pass_(signal);
  });
}

Suspension::Suspension(boost::asio::io_context& io, std::function<void()> on_suspend,
                       std::function<void()> on_resume)
    : signals_(io), on_suspend_(std::move(on_suspend)), on_resume_(std::move(on_resume)) {
  struct sigaction action {};
  if (sigaction(SIGTSTP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  signals_.add(SIGTSTP);
  signals_.add(SIGCONT);
  Await();
}

void Suspension::Await() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    Await();
    // Shells and schedulers send SIGCONT to whatever they want to be sure of.
    if (!suspended_ && signal == SIGCONT) return;
    suspended_ = !suspended_;
    suspended_ ? on_suspend_() : on_resume_();
  });
}

DrainWatch::Times DrainWatch::TimesOf(std::chrono::milliseconds interval, int rank, int nodes) {
  const auto count = static_cast<std::int64_t>(std::max(nodes, 1));
  const std::int64_t place = std::clamp<std::int64_t>(rank, 0, count - 1);
  const auto between = std::max(interval, kBetweenQuestions * count);
  return {.first = between * (place + 1) / count, .interval = between};
}

std::chrono::steady_clock::time_point DrainWatch::NextTime(
    std::chrono::steady_clock::time_point due, std::chrono::milliseconds interval,
    std::chrono::steady_clock::time_point now) {
  return due + interval * (1 + std::max<std::int64_t>(0, (now - due) / interval));
}

std::unique_ptr<DrainWatch> DrainWatch::Begin(boost::asio::io_context& io,
                                              const LaunchConfig& config,
                                              const Environment& environment, Callbacks callbacks) {
  const std::string node = GetOr(environment, "SLURMD_NODENAME", "");
  const bool in_slurm = !node.empty() && !GetOr(environment, "SLURM_JOB_ID", "").empty() &&
                        GetOr(environment, "MUSTER_SLURM", "1") != "0";
  if (!in_slurm || config.max_nodes == 1 || config.drain_interval.count() == 0) return nullptr;
  int rank = 0;
  if (!absl::SimpleAtoi(GetOr(environment, "SLURM_NODEID", "0"), &rank)) rank = 0;
  std::unique_ptr<DrainWatch> watch(new DrainWatch(
      io, node, ToBlock(environment), TimesOf(config.drain_interval, rank, config.max_nodes),
      config.min_nodes < config.max_nodes, std::move(callbacks)));
  watch->timer_.expires_after(watch->times_.first);
  watch->AwaitQuestion();
  return watch;
}

DrainWatch::DrainWatch(boost::asio::io_context& io, std::string node,
                       std::vector<std::string> environment, Times times, bool is_elastic,
                       Callbacks callbacks)
    : io_(io),
      node_(std::move(node)),
      environment_(std::move(environment)),
      times_(times),
      is_elastic_(is_elastic),
      callbacks_(std::move(callbacks)),
      timer_(io) {}

void DrainWatch::AwaitQuestion() {
  timer_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (!error) Ask();
  }));
}

void DrainWatch::Ask() {
  auto started = worker::TimedCommand::Start(
      io_,
      {.argv = {"scontrol", "show", "node", node_},
       .env = environment_,
       .limit = kAnswerLimit,
       .output_limit = kMaxNodeText},
      [this](const worker::TimedCommandResult& result) { OnAnswer(result); });
  if (absl::IsNotFound(started.status())) {
    // There is no scontrol, and will not be one later.
    spdlog::log(is_elastic_ ? spdlog::level::warn : spdlog::level::info,
                "whether Slurm drains this node is not known, and it would stay in the job: {}; "
                "--drain-interval=0 stops asking",
                std::string(started.status().message()));
    return;
  }
  if (!started.ok()) {
    OnNoAnswer(std::string(started.status().message()));
    return AwaitNext();
  }
  question_ = *std::move(started);
  callbacks_.on_command(question_->pid());
}

void DrainWatch::AwaitNext() {
  timer_.expires_at(NextTime(timer_.expiry(), times_.interval, std::chrono::steady_clock::now()));
  AwaitQuestion();
}

void DrainWatch::OnAnswer(const worker::TimedCommandResult& result) {
  question_.reset();
  AwaitNext();
  if (result.timed_out) {
    return OnNoAnswer(absl::StrCat("scontrol has not ended within ", base::Seconds(kAnswerLimit)));
  }
  const bool answered =
      result.status && result.status->signal == 0 && result.status->exit_code == 0;
  if (!answered) return OnNoAnswer("scontrol has failed");
  is_deaf_ = false;
  // The last thing done: this may be the end of the watch.
  if (const auto why = WhySlurmDrains(result.output)) callbacks_.on_drained(*why);
}

void DrainWatch::OnNoAnswer(const std::string& why) {
  if (std::exchange(is_deaf_, true)) return;
  spdlog::info("Slurm does not say whether it drains this node: {}; it is asked again in {}", why,
               base::Seconds(times_.interval));
}

std::optional<std::string> WhySlurmDrains(absl::string_view shown) {
  // "MIXED+DRAIN*": a state, its flags, and marks that are of no account here (sinfo(1), "NODE
  // STATE CODES").
  const absl::string_view rest = RestBehind(shown, "State=");
  const absl::string_view states = rest.substr(0, rest.find(' '));
  bool is_drained = false;
  bool is_failing = false;
  for (absl::string_view state : absl::StrSplit(states, '+')) {
    state = state.substr(0, state.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"));
    is_drained |= state == "DRAIN" || state == "DRAINING" || state == "DRAINED";
    is_failing |= state == "FAIL" || state == "FAILING";
  }
  if (!is_drained && !is_failing) return std::nullopt;
  // "bad fan [root@2026-01-31T12:00:00]".
  absl::string_view reason = RestBehind(shown, "Reason=");
  reason = absl::StripAsciiWhitespace(reason.substr(0, reason.rfind('[')));
  const std::string why =
      reason.empty()
          ? ""
          : absl::StrCat(" (", rendezvous::OneLine({reason.data(), reason.size()}, kMaxReason),
                         ")");
  return absl::StrCat(is_failing ? "Slurm expects it to fail" : "Slurm drains it", why);
}

}  // namespace muster::launcher
