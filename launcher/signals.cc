#include "launcher/signals.h"

#include <csignal>
#include <utility>

namespace muster::launcher {
namespace {

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void AddUnlessIgnored(boost::asio::signal_set& set, std::initializer_list<int> signals) {
  for (const int signal : signals) {
    if (!IsIgnored(signal)) set.add(signal);
  }
}

}  // namespace

Signals::Signals(boost::asio::io_context& io, std::function<void(int)> on_stop,
                 std::function<void(int)> on_pass)
    : stop_(io), pass_(io), on_stop_(std::move(on_stop)), on_pass_(std::move(on_pass)) {
  AddUnlessIgnored(stop_, {SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  AddUnlessIgnored(pass_, {SIGUSR1, SIGUSR2});
  AwaitStop();
  AwaitPass();
}

void Signals::Close() {
  stop_.cancel();
  pass_.cancel();
}

void Signals::AwaitStop() {
  stop_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    AwaitStop();
    on_stop_(signal);
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
