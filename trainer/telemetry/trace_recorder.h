// Records LibTorch's operators, forward and backward, on all threads of this process.
#pragma once

#include <cstdint>

#include "trainer/telemetry/trace_file.h"

namespace muster::trainer {

// While a recorder exists, each operator and each RECORD_USER_SCOPE is added to its buffer when it
// ends. Works with every LibTorch: it uses at::RecordFunction, on which Kineto is built, and not
// Kineto itself, which Debian's 1.13 lacks. At most one may exist at a time. It may be created and
// destroyed while other threads run operators; those that end after it are not recorded.
class TraceRecorder {
 public:
  // `buffer` must outlive this object.
  explicit TraceRecorder(TraceBuffer& buffer);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

 private:
  std::uint64_t handle_;
};

}  // namespace muster::trainer
