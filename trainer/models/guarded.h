// Validates a user's recipe, and makes its functions name themselves in errors.
#pragma once

#include "absl/status/status.h"

#include "trainer/models/recipe.h"

namespace muster::trainer {

// kInvalidArgument and one sentence if the recipe lacks a function, a name is empty or has control
// characters, or a metric has the name of another one or of a built-in entry of reports.
absl::Status CheckRecipe(const Recipe& recipe);

// The same recipe, whose functions, stages and data sets add their names to what they throw:
// std::invalid_argument keeps its type; anything else, even if not a std::exception, becomes a
// std::runtime_error. Also checks the result of the loss, and once that it is a sum and not a mean:
// the first batch is concatenated with itself, which doubles a sum. `recipe` must have passed
// CheckRecipe.
Recipe Guarded(const Recipe& recipe);

}  // namespace muster::trainer
