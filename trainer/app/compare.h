// muster-train compare: the parallel methods side by side.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

struct Registry;  // trainer/models/registry.h

// The result of one method.
struct MethodResult {
  std::string name;  // "single", "threads", "average", "ddp"
  double samples_per_second = 0;
  // Moved per step by one rank, or with threads by the whole process: as counted (NaN where c10d
  // sends, which does not count), and predicted by the formula of the method.
  double counted_bytes = 0;
  double formula_bytes = 0;
  double model_bytes = 0;  // of all parameters
  // Of parameters, gradients and the optimizer's state on the rank that keeps most: as counted by
  // the allocator, and by formula. NaN on a GPU.
  double state_bytes = 0;
  double state_formula = 0;
  // The share of its time that a pipeline has waited, and should have; NaN without one.
  double bubble = 0;
  double bubble_theory = 0;
  double train_loss = 0;
  double test_loss = 0;  // NaN when not measured, like test_accuracy
  double test_accuracy = 0;
};

// The results as a table with one line per method and the speed-up relative to the first.
std::string FormatComparison(const std::vector<MethodResult>& results);

// What ddp and threads came to on so many ranks.
struct ScalingRow {
  int ranks = 1;
  MethodResult ddp;
  MethodResult threads;
};

// What each sends beside T = 2(N-1)K/N, which a rank of ddp sends for K bytes of parameters, and
// 2(N-1)K, which passes through the one process of threads: a line for each number of ranks.
std::string FormatScaling(const std::vector<ScalingRow>& rows);

// Trains the same model on the same data with each method in turn, as ranks of this program that
// Muster starts on this machine, and prints the table to `out`. `argv` begins with "compare"; flags
// that compare does not know are passed to each training run. Returns the exit code.
// kInvalidArgument for a mistake in the flags, or when there is no launcher. kUnavailable when a
// training run failed, whose message is on stderr, or when no temporary directory can be made.
absl::StatusOr<int> RunCompare(int argc, const char* const* argv, const Registry& registry,
                               std::ostream& out);

}  // namespace muster::trainer
