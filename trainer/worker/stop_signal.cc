#include "trainer/worker/stop_signal.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace muster::trainer {
namespace {

// Who asks, one bit each.
enum Sender : unsigned { kTerminal = 1, kParent = 2, kOther = 4 };

std::atomic<bool> g_remembers{false};
std::atomic<unsigned> g_heard{0};  // senders
std::atomic<int> g_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free &&
                  std::atomic<unsigned>::is_always_lock_free &&
                  std::atomic<int>::is_always_lock_free,
              "they are used in a signal handler");

Sender SenderOf(const siginfo_t& info) {
  if (info.si_code > 0) return kTerminal;  // the kernel on its own account
  return info.si_pid == getppid() ? kParent : kOther;
}

void OnStop(int signal, siginfo_t* info, void*) {
  const Sender sender = SenderOf(*info);
  // By _exit rather than by the signal, which does not end the first process of a container.
  if (!g_remembers || (g_heard.fetch_or(sender) & sender) != 0) _exit(StopExitCode(signal));
  int none = 0;
  g_signal.compare_exchange_strong(none, signal);
}

}  // namespace

void EndOnStopSignals() {
  for (const int signal : kStopSignals) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_sigaction = OnStop;
    // Calls that were interrupted go on: the loop looks when its step is done.
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigaction(signal, &action, nullptr);
  }
}

void RememberStopSignals() {
  g_remembers = true;
}

int StopSignal() {
  return g_signal;
}

}  // namespace muster::trainer
