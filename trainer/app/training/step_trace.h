// The phases of each step, and for --trace the operators of the first steps.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"

#include "trainer/app/training/job.h"
#include "trainer/telemetry/phase_tracker.h"
#include "trainer/telemetry/trace_file.h"
#include "trainer/telemetry/trace_recorder.h"

namespace muster::trainer {

// One thread; the operators are those of all threads. At most one may record at a time.
class StepTrace {
 public:
  StepTrace();

  // Records until `steps` steps are done, or Write() is called.
  void Record(std::int64_t steps);
  void OnStep();

  // For --profile, and for strategies to enter.
  PhaseTracker& phases() { return phases_; }

  // Ends the recording, and writes this rank's part of the trace; rank 0 puts those together that
  // it sees, and tells the user of the others. Every rank calls it. kUnavailable when a file cannot
  // be written. Throws what c10d throws.
  absl::Status Write(const Job& job);

 private:
  void End();

  TraceBuffer trace_;
  std::unique_ptr<TraceRecorder> recorder_;  // while steps are traced
  PhaseTracker phases_;
  std::int64_t steps_left_ = 0;
};

}  // namespace muster::trainer
