#include "trainer/worker/stop_signal.h"

#include <atomic>
#include <csignal>

namespace muster::trainer {
namespace {

std::atomic<bool> g_stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void OnTerm(int) {
  g_stop_asked = true;
}

}  // namespace

void RememberStopSignal() {
  struct sigaction action = {};
  action.sa_handler = OnTerm;
  // Calls that were interrupted go on: the loop looks when its step is done.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGTERM, &action, nullptr);
}

bool StopAsked() {
  return g_stop_asked;
}

}  // namespace muster::trainer
