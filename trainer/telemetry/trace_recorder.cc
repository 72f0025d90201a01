#include "trainer/telemetry/trace_recorder.h"

#include <ATen/record_function.h>

#include <chrono>
#include <memory>

namespace muster::trainer {
namespace {

// The observer's callbacks are plain functions, hence a global. Set before they are registered, and
// cleared after.
TraceBuffer* g_buffer = nullptr;

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
  g_buffer->Add({.name = function.name(),
                 .thread = at::RecordFunction::currentThreadId(),
                 .start_ns = start_ns,
                 .duration_ns = NowNs() - start_ns});
}

}  // namespace

TraceRecorder::TraceRecorder(TraceBuffer& buffer) {
  g_buffer = &buffer;
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(OnStart, OnEnd)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                   at::RecordScope::USER_SCOPE}));
}

TraceRecorder::~TraceRecorder() {
  at::removeCallback(handle_);
  g_buffer = nullptr;
}

}  // namespace muster::trainer
