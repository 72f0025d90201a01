// muster-train consolidate: a checkpoint in the other form.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

#include "trainer/recipe/registry.h"

namespace muster::trainer {

// Makes one file of a checkpoint in shards, as --checkpoint-format whole would have written it, or
// with --shards a directory of shards, of a checkpoint in either form. `argv` begins with
// "consolidate". Writes what it does to `out`. Needs memory for the checkpoint. Returns the exit
// code. kInvalidArgument for a mistake in the flags, when the checkpoint is missing or damaged, and
// when the directory to write is there and not empty; kUnavailable when reading or writing fails.
absl::StatusOr<int> RunConsolidate(int argc, const char* const* argv, const Registry& registry,
                                   std::ostream& out);

}  // namespace muster::trainer
