// What came out of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::trainer {

struct Summary {
  int world_size = 1;
  std::string backend;  // "gloo" or "nccl"
  int restart_count = 0;
  int epochs = 0;          // begun
  std::int64_t steps = 0;  // over all epochs
  std::int64_t batch_size = 0;
  double train_loss = 0;                // mean over the images of the last epoch
  std::optional<double> test_accuracy;  // in [0, 1]; nullopt when it was not measured
  double images_per_second = 0;         // training only, all ranks together
  std::string checkpoint;
};

// The summary as plain lines, "what  value", each ended by a line break.
std::string FormatSummary(const Summary& summary);

}  // namespace muster::trainer
