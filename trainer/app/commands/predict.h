// muster-train predict: what a trained model says of each image.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

#include "trainer/recipe/registry.h"

namespace muster::trainer {

// Writes a line of JSON for each image or row, in the order of the data, to --output or else to
// `out`: {"index":0,"label":9,"top":[{"class":9,"probability":0.98},...]}, the likeliest class
// first; "label" is null if the data does not say it, or says one that the model does not know.
// Where classes have names there are "label_name", and "name" beside each "class". A file appears
// whole or not at all. `argv` begins with "predict"; flags that are not its own are those of
// muster-train. Returns the exit code. kInvalidArgument for a mistake in the flags, and when
// checkpoint or data are missing, damaged, or do not fit together; kUnavailable when the lines
// cannot be written. Throws what LibTorch throws.
absl::StatusOr<int> RunPredict(int argc, const char* const* argv, const Registry& registry,
                               std::ostream& out);

}  // namespace muster::trainer
