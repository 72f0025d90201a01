// muster-train eval: measures a trained model on the test samples.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

#include "trainer/models/registry.h"

namespace muster::trainer {

// Measures the model of a checkpoint as training does after an epoch, in a single process or as one
// of the ranks of a launcher; rank 0 writes the numbers to `out`, as lines or as a JSON object.
// `argv` begins with "eval"; all flags but its own are those of muster-train. Only rank 0 reads the
// checkpoint. Returns the exit code. kInvalidArgument for a mistake in the flags, and if checkpoint
// or data are missing, damaged, or do not fit together; kUnavailable if a rank is lost.
absl::StatusOr<int> RunEval(int argc, const char* const* argv, const Registry& registry,
                            std::ostream& out);

}  // namespace muster::trainer
