// muster-train consolidate: converts a checkpoint between its two forms.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

#include "trainer/models/registry.h"

namespace muster::trainer {

// Converts a checkpoint in shards to one file, as --checkpoint-format whole would have written it,
// or with --shards a checkpoint in either form to a directory of shards. `argv` begins with
// "consolidate". Reports its progress to `out`. Needs memory for the whole checkpoint. Returns the
// exit code. kInvalidArgument for a mistake in the flags, if the checkpoint is missing or damaged,
// and if the output directory exists and is not empty; kUnavailable if reading or writing fails.
absl::StatusOr<int> RunConsolidate(int argc, const char* const* argv, const Registry& registry,
                                   std::ostream& out);

}  // namespace muster::trainer
