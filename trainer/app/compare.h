// muster-train compare: the parallel methods side by side.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// The result of one method.
struct MethodResult {
  std::string name;  // "single", "threads", "average", "ddp"
  double samples_per_second = 0;
  // Moved per step by one rank, or with threads by the whole process: as counted (NaN where c10d
  // sends, which does not count), and predicted by the formula of the method.
  double counted_bytes = 0;
  double formula_bytes = 0;
  double train_loss = 0;
  double test_loss = 0;  // NaN when not measured, like test_accuracy
  double test_accuracy = 0;
};

// The results as a table with one line per method and the speed-up relative to the first.
std::string FormatComparison(const std::vector<MethodResult>& results);

// Trains the same model on the same data with each method in turn, as ranks of this program that
// Muster starts on this machine, and prints the table to `out`. `argv` begins with "compare"; flags
// that compare does not know are passed to each training run. Returns the exit code.
// kInvalidArgument for a mistake in the flags, or when there is no launcher. kUnavailable when a
// training run failed, whose message is on stderr, or when no temporary directory can be made.
absl::StatusOr<int> Compare(int argc, const char* const* argv, std::ostream& out);

}  // namespace muster::trainer
