// muster-train compare: the ways to share the work, side by side.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// What one way came to.
struct MethodResult {
  std::string name;  // "single", "threads", "average", "ddp"
  double samples_per_second = 0;
  double moved_bytes = 0;    // in a step; by a rank, or with threads in the whole process
  double formula_bytes = 0;  // what the formula says of the same
  double train_loss = 0;
  double test_loss = 0;  // NaN when it was not measured, as test_accuracy
  double test_accuracy = 0;
};

// The table: a line for each method, with the speed against the first one's.
std::string FormatComparison(const std::vector<MethodResult>& results);

// Trains the same model on the same data in each way, one after the other, as processes of this
// program on this machine, and prints the table to `out`. `argv` begins with "compare"; flags that
// are not its own go to each training. Returns the exit code. kInvalidArgument for a mistake in the
// flags, kUnavailable when a training failed: what it said is on the standard error.
absl::StatusOr<int> Compare(int argc, const char* const* argv, std::ostream& out);

}  // namespace muster::trainer
