// What rank 0 writes while the training goes on, besides what it shows.
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

// The loss log, the metrics and the events for TensorBoard, as far as they are asked for. A run
// that goes on from a checkpoint goes on with its files, too: what they say of later steps is
// removed. One thread.
class Reporter {
 public:
  // Opens the files; `resumed_step` is the step of the checkpoint, 0 without one. kInvalidArgument
  // when one cannot be opened.
  static absl::StatusOr<std::unique_ptr<Reporter>> Open(const ReportOptions& options,
                                                        std::int64_t resumed_step);

  // The mean loss of step `step`.
  void StepLoss(std::int64_t step, double loss);
  void Report(const Scalars& scalars);

  // Hands everything to the kernel. kUnavailable when that, or a write before it, failed.
  absl::Status Flush();

 private:
  std::unique_ptr<StepLog> loss_log_;
  std::unique_ptr<StepLog> metrics_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  absl::Status status_;
};

// Seconds since the Unix epoch.
double UnixSeconds();

}  // namespace muster::trainer
