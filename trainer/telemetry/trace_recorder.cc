#include "trainer/telemetry/trace_recorder.h"

#include <ATen/record_function.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace muster::trainer {
namespace {

// Where events go; null when nothing records. The observer's callbacks are plain functions, hence a
// global. An operator that began before its callbacks were taken away calls them at its end, on
// whatever thread, hence the lock.
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
  // LibTorch keeps its list of callbacks behind a lock, and each operator its own copy of them,
  // since it has getStepCallbacks(); the warning in its header is older.
  at::removeCallback(handle_);
  SendEventsTo(nullptr);
}

}  // namespace muster::trainer
