// Which of muster-train's models a state dict belongs to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/models/model_options.h"

namespace muster::trainer {

// The shape of each tensor, by its name without the "module." of Python's DistributedDataParallel.
using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;

// What names and shapes tell of the model: its kind and what flags choose of it, but not how many
// heads a GPT has, which leave no trace, nor the size of images, which the data decides.
// kInvalidArgument, one sentence, when no model of muster-train has such tensors. Whether all of
// them fit is found out when they are loaded.
absl::StatusOr<ModelOptions> ModelOfStateDict(const TensorShapes& shapes);

}  // namespace muster::trainer
