// A network for tests whose stages draw random numbers and change buffers.
#pragma once

#include <cstdint>

#include "trainer/models/recipe.h"

namespace muster::trainer {

// `blocks` blocks of a wide layer with GELU and dropout, the first half with batch normalization,
// and a last layer. Takes rows of `width` numbers, shape.classes of them out.
ModelRecipe DroppingRecipe(int blocks, std::int64_t width);

}  // namespace muster::trainer
