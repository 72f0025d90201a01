#include "launcher/agent/signals.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::launcher {
namespace {

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void AddUnlessIgnored(boost::asio::signal_set& set, const std::vector<int>& signals) {
  for (const int signal : signals) {
    if (!IsIgnored(signal)) set.add(signal);
  }
}

}  // namespace

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
  AddUnlessIgnored(pass_, passed);
  AwaitPass();
}

void Signals::Begin() {
  AddUnlessIgnored(stop_, stop_signals_);
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

}  // namespace muster::launcher
