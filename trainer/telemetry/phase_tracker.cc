#include "trainer/telemetry/phase_tracker.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "trainer/comm/wait_clock.h"

namespace muster::trainer {
namespace {

std::int64_t UnixNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

PhaseTracker::PhaseTracker() : clock_(PhaseClock::Clock::now(), WaitedByThread()) {}

void PhaseTracker::WaitFor(const at::Device& device) {
  device_ = device;
}

void PhaseTracker::Enter(Phase phase) {
  if (!device_.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(device_.type());
    guard.synchronizeStream(guard.getStream(device_));
  }
  if (trace_ != nullptr) {
    const std::int64_t now_ns = UnixNs();
    if (since_ns_ != 0) {
      // Thread 0, which is no thread of LibTorch's, so that the phases stand above its operators.
      trace_->Add({.name = PhaseName(clock_.phase()),
                   .thread = 0,
                   .start_ns = since_ns_,
                   .duration_ns = now_ns - since_ns_});
    }
    since_ns_ = now_ns;
  }
  clock_.Enter(phase, PhaseClock::Clock::now(), WaitedByThread());
}

}  // namespace muster::trainer
