// Fully connected networks: a small one, or one large enough for communication to matter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/models/model_recipe.h"

namespace muster::trainer {

// The same network as this torch.nn.Sequential, for hidden widths h1, h2, ...:
//   Flatten(), Linear(C * H * W, h1), ReLU(), Linear(h1, h2), ReLU(), ..., Linear(hn, classes)
ModelRecipe MlpRecipe(std::string name, std::vector<std::int64_t> hidden);

}  // namespace muster::trainer
