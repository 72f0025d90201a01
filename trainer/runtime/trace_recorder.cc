#include "trainer/runtime/trace_recorder.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "trainer/worker/timing.h"

namespace muster::trainer {
namespace {

// The destination of events; null if nothing records. A global, as the observer's callbacks are
// plain functions. An operator that began before its callbacks were removed still calls them at its
// end, on any thread, hence the lock.
std::mutex g_mutex;
TraceBuffer* g_buffer = nullptr;  // guarded by g_mutex

void SendEventsTo(TraceBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_buffer = buffer;
}

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Started : at::ObserverContext {
  std::int64_t at_ns = 0;
};

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction&) {
  auto started = std::make_unique<Started>();
  started->at_ns = NowNs();
  return started;
}

void OnEnd(const at::RecordFunction& function, at::ObserverContext* context) {
  const std::int64_t start_ns = static_cast<Started*>(context)->at_ns;
  TraceEvent event = {.name = function.name(),
                      .thread = at::RecordFunction::currentThreadId(),
                      .start_ns = start_ns,
                      .duration_ns = NowNs() - start_ns};
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_buffer != nullptr) g_buffer->Add(std::move(event));
}

}  // namespace

TraceRecorder::TraceRecorder(TraceBuffer& buffer) {
  SendEventsTo(&buffer);
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(OnStart, OnEnd)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                   at::RecordScope::USER_SCOPE}));
}

TraceRecorder::~TraceRecorder() {
  // LibTorch's list of callbacks is behind a lock, and each operator has a copy, since it has
  // getStepCallbacks(); the warning in its header is outdated.
  at::removeCallback(handle_);
  SendEventsTo(nullptr);
}

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
      // Thread 0, which LibTorch never uses, so that the phases are shown above its operators.
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
