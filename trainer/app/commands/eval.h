// muster-train eval: how good a trained model is on the test samples.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

#include "trainer/recipe/registry.h"

namespace muster::trainer {

// Measures the model of a checkpoint as training does after an epoch, alone or as one of the ranks
// that a launcher started; rank 0 writes the numbers to `out`, as lines or as a JSON object. `argv`
// begins with "eval"; flags that are not its own are those of muster-train. Rank 0 alone reads the
// checkpoint. Returns the exit code. kInvalidArgument for a mistake in the flags, and when
// checkpoint or data are missing, damaged, or do not fit together; kUnavailable when a rank is
// lost.
absl::StatusOr<int> RunEval(int argc, const char* const* argv, const Registry& registry,
                            std::ostream& out);

}  // namespace muster::trainer
