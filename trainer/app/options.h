// What the user asks muster-train to do: its command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/dist/process_group.h"
#include "trainer/models/classifier.h"

namespace muster::trainer {

enum class DatasetKind {
  kIdx,        // the four IDX files in data_dir
  kGenerated,  // made in memory
};

// The command line, checked as far as it can be without the environment. The same on every rank.
struct Options {
  DatasetKind dataset = DatasetKind::kIdx;
  std::string data_dir = "/usr/share/datasets/fashion-mnist";

  ModelKind model = ModelKind::kCnn;
  // The type of parameters, gradients and losses. Twice the bits cost twice the time, and keep
  // rounding out of a comparison of loss curves.
  at::ScalarType dtype = at::kFloat;
  int epochs = 1;
  // Samples in one step, over all ranks together; the number of ranks divides it.
  std::int64_t batch_size = 128;
  double learning_rate = 0.02;
  double momentum = 0.9;
  // Of the initial parameters and of the order of the samples.
  std::uint64_t seed = 0;
  // Ends the training after this many steps; 0: after the epochs.
  std::int64_t max_steps = 0;
  bool evaluate = true;

  std::string checkpoint = "muster-train.pt";
  // Where each step's loss is written, one line each; empty: nowhere.
  std::string loss_log;

  Comm comm = Comm::kAuto;
  std::chrono::seconds timeout{300};
  // Threads of one rank's tensor operations; 0: its share of the processors.
  int threads = 0;

  // Set when --help was given: the text to print. Nothing else is meant then.
  std::string help;
};

// Reads the command line, the program's name first. kInvalidArgument and one sentence for a mistake
// in it.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv);

// kInvalidArgument unless `world_size` ranks can share each batch evenly.
absl::Status CheckBatchSize(const Options& options, int world_size);

}  // namespace muster::trainer
