// Tracks the phases of the training, for the profile table and for the trace.
#pragma once

#include <chrono>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "trainer/telemetry/phase_clock.h"
#include "trainer/telemetry/trace_file.h"

namespace muster::trainer {

// Reads the clock for PhaseClock, and adds each phase to a trace as an event. One thread.
class PhaseTracker {
 public:
  PhaseTracker();

  // From now on, adds phases to `trace`, on a row of their own; null stops that. `trace` must
  // outlive this object or be replaced first.
  void RecordTo(TraceBuffer* trace) { trace_ = trace; }

  // From now on, ends a phase when `device` is done with what it was given in it, and not as soon
  // as that was handed over: a phase takes as long as it does on a GPU. The thread waits, which
  // costs a little. Nothing changes for the CPU.
  void WaitFor(const at::Device& device);

  // Ends the current phase now and begins `phase`.
  void Enter(Phase phase);

  const PhaseClock& clock() const { return clock_; }

 private:
  PhaseClock clock_;
  at::Device device_ = at::kCPU;  // that is waited for
  TraceBuffer* trace_ = nullptr;
  std::int64_t since_ns_ = 0;  // start of the current phase, Unix time; 0: not recorded
};

}  // namespace muster::trainer
