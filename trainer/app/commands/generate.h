// muster-train generate: text from a GPT.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

#include "trainer/recipe/registry.h"

namespace muster::trainer {

// Continues a prompt with the GPT of a checkpoint, and writes both to `out`, each character as soon
// as it is there; how fast that went goes to the standard error. `argv` begins with "generate".
// Returns the exit code. kInvalidArgument for a mistake in the flags, and when the checkpoint is
// missing, damaged, or of another model; kUnavailable when the text cannot be written. Throws what
// LibTorch throws.
absl::StatusOr<int> RunGenerate(int argc, const char* const* argv, const Registry& registry,
                                std::ostream& out);

}  // namespace muster::trainer
