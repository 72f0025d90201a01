// Records LibTorch's operators, forward and backward, on all threads of this process.
#pragma once

#include <chrono>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "trainer/worker/timing.h"

namespace muster::trainer {

// While a recorder exists, each operator and each RECORD_USER_SCOPE is added to its buffer at its
// end. Works with every LibTorch: it uses at::RecordFunction, the basis of Kineto, and not Kineto
// itself, which Debian's 1.13 lacks. At most one may exist at a time. It may be created and
// destroyed while other threads run operators; those that end later are not recorded.
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

// Tracks the phases of the training, for the profile table and for the trace.

// Reads the clock for PhaseClock, and adds each phase to a trace as an event. One thread.
class PhaseTracker {
 public:
  PhaseTracker();

  // From now on, adds phases to `trace`, in a separate row; null stops that. `trace` must outlive
  // this object or be replaced first.
  void RecordTo(TraceBuffer* trace) { trace_ = trace; }

  // From now on, a phase ends when `device` has finished its work, and not when the work has been
  // queued: so phases have their real duration on a GPU. The thread waits, which costs a little. No
  // effect on the CPU.
  void WaitFor(const at::Device& device);

  // Ends the current phase now and begins `phase`.
  void Enter(Phase phase);

  const PhaseClock& clock() const { return clock_; }

 private:
  PhaseClock clock_;
  at::Device device_ = at::kCPU;  // the device to wait for
  TraceBuffer* trace_ = nullptr;
  std::int64_t since_ns_ = 0;  // start of the current phase, Unix time; 0: not recorded
};

}  // namespace muster::trainer
