// muster-train predict: a trained model's prediction for each image.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"

#include "trainer/models/registry.h"

namespace muster::trainer {

// Writes a line of JSON for each image or row, in the order of the data, to --output or else to
// `out`: {"index":0,"label":9,"top":[{"class":9,"probability":0.98},...]}, the likeliest class
// first; "label" is null if the data has none, or one unknown to the model. If classes have names,
// "label_name" is added, and "name" next to each "class". The file is written atomically. `argv`
// begins with "predict"; all flags but its own are those of muster-train. Returns the exit code.
// kInvalidArgument for a mistake in the flags, and when checkpoint or data are missing, damaged, or
// do not fit together; kUnavailable when the lines cannot be written. Throws what LibTorch throws.
absl::StatusOr<int> RunPredict(int argc, const char* const* argv, const Registry& registry,
                               std::ostream& out);

}  // namespace muster::trainer
