// muster-train schedule: shows how the ranks of a pipeline take turns.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Simulates a schedule of pipeline parallelism with the times given by flags, and prints to `out`
// what each rank does when, in lines of at most `width` columns, and its cost compared with theory.
// With --svg it also draws this into a file. `argv` begins with "schedule". Starts no ranks.
// Returns the exit code. kInvalidArgument for a mistake in the flags, or if the file cannot be
// created; kUnavailable if writing it fails.
absl::StatusOr<int> RunSchedule(int argc, const char* const* argv, int width, std::ostream& out);

}  // namespace muster::trainer
