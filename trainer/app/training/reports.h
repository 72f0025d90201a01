// The results of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/world.h"
#include "trainer/models/objective.h"
#include "trainer/worker/launcher_link.h"
#include "trainer/worker/step_log.h"

namespace muster::trainer {

struct Summary {
  int world_size = 1;
  std::string comm;  // "gloo", "shm", "nccl"
  int restart_count = 0;
  std::int64_t resumed_step = 0;   // 0: from the beginning
  int epochs = 0;                  // begun
  std::int64_t steps = 0;          // over all epochs
  std::int64_t skipped_steps = 0;  // in this run, with --on-nonfinite skip
  std::int64_t batch_size = 0;
  std::string unit = "images";  // what a sample is called
  double train_loss = 0;        // nats, mean over the last epoch
  // On the test samples; nullopt when not measured.
  std::optional<double> test_loss;  // nats, if it is the cross entropy
  std::vector<MetricValue> test_metrics;
  std::vector<MetricValue> int8_metrics;  // with --qat: of the network of 8-bit numbers
  // Of an earlier test; nullopt if none was better than the last.
  std::optional<double> best_test_loss;  // nats
  std::int64_t best_step = 0;
  double samples_per_second = 0;  // training only, over all ranks
  double tokens_per_second = 0;   // the same for tokens of text; 0 for images
  // Multiplications and additions of a step, forward and backward, including what --recompute
  // repeats: per sample, and per rank and second; 0: not counted.
  double flops_per_sample = 0;
  double flops_per_second = 0;
  // Its GPU's maximum (PeakFlops), and the number format; 0: unknown.
  double peak_flops = 0;
  std::string peak_of;  // "bfloat16 or float16 of an NVIDIA H100"
  // Bytes sent per rank, as a mean, to average gradients or parameters, or to share a model:
  // predicted by the formula, and as counted (nullopt if c10d sends, which does not count).
  double formula_bytes_per_step = 0;
  std::optional<double> counted_bytes_per_step;
  // The part of each dimension of a mesh; empty without one.
  std::vector<std::pair<std::string, double>> bytes_by_dimension;
  // Parameters, gradients and optimizer state on the rank that keeps most, as counted and by
  // formula; 0: unknown.
  std::int64_t state_bytes = 0;
  std::int64_t state_formula_bytes = 0;
  // The share of time that the ranks of a pipeline waited, and its theoretical value.
  std::optional<double> bubble;
  std::optional<double> bubble_theory;
  std::int64_t peak_memory_bytes = 0;  // rank 0's process; 0: unknown
  std::int64_t peak_gpu_bytes = 0;     // reserved on rank 0's GPU; 0 without one
  // Where the result is. For a run that was stopped: where it can resume, or empty.
  std::string checkpoint;
  // The signal that stopped the run early; 0: none.
  int stop_signal = 0;
};

// The summary as plain text: one line "name value" per entry.
std::string FormatSummary(const Summary& summary);

// The log files that rank 0 writes during the training.

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
  // Adds `scalars` to the metrics, unless they repeat those of the resumed step, and to
  // TensorBoard's events.
  void Report(const Scalars& scalars);

  // Passes everything to the kernel. kUnavailable if that or an earlier write failed.
  absl::Status Flush();

 private:
  std::unique_ptr<StepLog> loss_log_;
  std::unique_ptr<StepLog> metrics_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  absl::Status status_;
};

// The current time in seconds since the Unix epoch.
double UnixSeconds();

// The lines printed before the first step.

// The name of the data: "idx (/usr/share/datasets/fashion-mnist)", "generated text".
std::string DataName(const Options& options);

// The first line, printed before anything slow: "muster-train: cnn on idx (/usr/share/...), rank 0
// of 2, 1 thread each, BLAS 118 GFLOP/s".
std::string StartLine(const Options& options, const Environment& env, int threads, double gflops);

// The second line, printed once the ranks have met: "joined: shm on cpu (shared memory: 2 ranks on
// one host)".
std::string JoinedLine(const World& world);

// The peak memory use of this process.

// The most bytes of this process that were in memory at once (VmHWM); 0 if /proc does not say.
std::int64_t PeakResidentBytes();

}  // namespace muster::trainer
