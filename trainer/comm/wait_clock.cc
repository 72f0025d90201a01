#include "trainer/comm/wait_clock.h"

#include <atomic>

namespace muster::trainer {
namespace {

using WaitTime = std::chrono::steady_clock;

struct Waits {
  int scopes = 0;
  WaitTime::time_point since;
  std::chrono::nanoseconds ended{0};
};
thread_local Waits of_thread;
std::atomic<bool> any_listener = false;

}  // namespace

void CountWaits() {
  any_listener = true;
}

bool WaitsAreCounted() {
  return any_listener.load(std::memory_order_relaxed);
}

WaitScope::WaitScope() : counts_(WaitsAreCounted()) {
  if (counts_ && of_thread.scopes++ == 0) of_thread.since = WaitTime::now();
}

WaitScope::~WaitScope() {
  if (counts_ && --of_thread.scopes == 0) of_thread.ended += WaitTime::now() - of_thread.since;
}

std::chrono::nanoseconds WaitedByThread() {
  return of_thread.ended;
}

}  // namespace muster::trainer
