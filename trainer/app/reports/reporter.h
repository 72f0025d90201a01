// The log files that rank 0 writes during the training.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/telemetry/scalars.h"
#include "trainer/telemetry/step_log.h"
#include "trainer/telemetry/tensorboard.h"

namespace muster::trainer {

// Writes the loss log, the metrics and TensorBoard events, each if requested. A resumed run
// continues the existing files, after dropping entries for steps later than its checkpoint. One
// thread.
class Reporter {
 public:
  // Opens the files. `resumed_step` is the step of the checkpoint, 0 without one. kInvalidArgument
  // when a file cannot be opened, kUnavailable when writing to one fails.
  static absl::StatusOr<std::unique_ptr<Reporter>> Open(const ReportOptions& options,
                                                        std::int64_t resumed_step);

  // Adds the mean loss of step `step` to the loss log. Errors are reported by Flush().
  void StepLoss(std::int64_t step, double loss);
  // Adds `scalars` to the metrics, unless they say the same of the step that was resumed, and to
  // TensorBoard's events.
  void Report(const Scalars& scalars);

  // Hands everything to the kernel. kUnavailable when that or an earlier write failed.
  absl::Status Flush();

 private:
  std::unique_ptr<StepLog> loss_log_;
  std::unique_ptr<StepLog> metrics_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  absl::Status status_;
};

// The current time in seconds since the Unix epoch.
double UnixSeconds();

}  // namespace muster::trainer
