// muster-train schedule: the ranks of a pipeline, and how they take turns.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Plays a schedule of pipeline parallelism with the times that the flags give, and prints to `out`
// what each rank does when, in lines of at most `width` columns, and what that costs beside what
// theory says. With --svg it draws the same into a file. `argv` begins with "schedule". Starts no
// rank. Returns the exit code. kInvalidArgument for a mistake in the flags, or when the file cannot
// be created; kUnavailable when writing it fails.
absl::StatusOr<int> RunSchedule(int argc, const char* const* argv, int width, std::ostream& out);

}  // namespace muster::trainer
