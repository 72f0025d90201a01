// The phases of the training as they happen, for the table and for the trace.
#pragma once

#include <chrono>
#include <cstdint>

#include "trainer/telemetry/phase_clock.h"
#include "trainer/telemetry/trace_file.h"

namespace muster::trainer {

// Reads the clock for PhaseClock and makes each phase an event of a trace. One thread.
class PhaseTracker {
 public:
  PhaseTracker() : clock_(PhaseClock::Clock::now()) {}

  // From now on phases are added to `trace`, on a line of their own; null: no longer. It must
  // outlive this object.
  void RecordTo(TraceBuffer* trace) { trace_ = trace; }

  // Ends the phase that lasted until now, and begins `phase`.
  void Enter(Phase phase);

  const PhaseClock& clock() const { return clock_; }

 private:
  PhaseClock clock_;
  TraceBuffer* trace_ = nullptr;
  std::int64_t since_ns_ = 0;  // of the phase that lasts, since the Unix epoch; 0: not recorded
};

}  // namespace muster::trainer
