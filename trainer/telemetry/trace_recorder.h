// Records LibTorch's operators, forward and backward, on all threads of this process.
#pragma once

#include <cstdint>

#include "trainer/telemetry/trace_file.h"

namespace muster::trainer {

// While one exists, each operator and each RECORD_USER_SCOPE that ends becomes an event of its
// buffer. Works with every LibTorch: it uses at::RecordFunction, which Kineto stands on, too,
// rather than Kineto, which Debian's 1.13 is built without. At most one at a time; made and
// destroyed while no operator runs.
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
