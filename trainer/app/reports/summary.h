// The results of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/models/objective.h"

namespace muster::trainer {

struct Summary {
  int world_size = 1;
  std::string comm;  // "gloo", "shm", "nccl"
  int restart_count = 0;
  std::int64_t resumed_step = 0;   // 0: from the beginning
  int epochs = 0;                  // begun
  std::int64_t steps = 0;          // over all epochs
  std::int64_t skipped_steps = 0;  // of this run's, with --on-nonfinite skip
  std::int64_t batch_size = 0;
  std::string unit = "images";  // what a sample is called
  double train_loss = 0;        // nats, mean over the last epoch
  // On the test samples; nullopt when not measured.
  std::optional<double> test_loss;  // nats, if it is the cross entropy
  std::vector<MetricValue> test_metrics;
  std::vector<MetricValue> int8_metrics;  // with --qat: of the network of 8-bit numbers
  // Of an earlier test; nullopt when none was better than the last.
  std::optional<double> best_test_loss;  // nats
  std::int64_t best_step = 0;
  double samples_per_second = 0;  // training only, all ranks together
  double tokens_per_second = 0;   // the same in tokens of text; 0 for images
  // Multiplications and additions of a step, forward and backward, what --recompute repeats
  // included: for a sample, and of a rank in a second; 0: not counted.
  double flops_per_sample = 0;
  double flops_per_second = 0;
  // The most that its GPU can do of them (PeakFlops), and of which kind; 0: unknown.
  double peak_flops = 0;
  std::string peak_of;  // "bfloat16 or float16 of an NVIDIA H100"
  // Sent by a rank, the mean of all, to average gradients or parameters, or to share a model:
  // predicted by the formula, and as counted (nullopt where c10d sends, which does not count).
  double formula_bytes_per_step = 0;
  std::optional<double> counted_bytes_per_step;
  // Of these, what each dimension of a mesh sends; empty without one.
  std::vector<std::pair<std::string, double>> bytes_by_dimension;
  // Of parameters, gradients and the optimizer on the rank that keeps most, as counted and by
  // formula; 0: unknown.
  std::int64_t state_bytes = 0;
  std::int64_t state_formula_bytes = 0;
  // The share of their time that ranks of a pipeline have waited, and should have waited.
  std::optional<double> bubble;
  std::optional<double> bubble_theory;
  std::int64_t peak_memory_bytes = 0;  // of rank 0's process; 0: unknown
  std::int64_t peak_gpu_bytes = 0;     // reserved on rank 0's GPU; 0 without one
  // Where the result is. For a run that was stopped: where it can resume, or empty.
  std::string checkpoint;
  // The signal that stopped the run early; 0: none did.
  int stop_signal = 0;
};

// The summary as plain text: a line "name  value" for each entry, ended by a line break.
std::string FormatSummary(const Summary& summary);

}  // namespace muster::trainer
