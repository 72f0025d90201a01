// A user's recipe, looked through, and with functions that say whose they are when they fail.
#pragma once

#include "absl/status/status.h"

#include "trainer/recipe/recipe.h"

namespace muster::trainer {

// kInvalidArgument and one sentence when the recipe lacks a function, when a name is empty or has
// control characters, or when a metric has the name of another one or of what reports have anyway.
absl::Status CheckRecipe(const Recipe& recipe);

// The same recipe, of whose functions, stages and data sets each adds its name to what it throws:
// std::invalid_argument stays that, and anything else, also what is no std::exception, becomes a
// std::runtime_error. What the loss returns is checked, too. `recipe` must have passed CheckRecipe.
Recipe Guarded(const Recipe& recipe);

}  // namespace muster::trainer
