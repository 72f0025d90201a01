// The main() of a program that trains a model of your own.
#pragma once

#include "trainer/models/recipe.h"

namespace muster::trainer {

// Does what muster-train does, for the recipe's model and data: trains, alone or as one of the
// ranks that a launcher started, with muster-train's flags and the recipe's; or, when the first
// argument is "eval", measures a checkpoint, or, when it is "consolidate", changes its form. Call
// it from main() before anything else is done with LibTorch, and return what it returns, the exit
// code. After an error it prints one sentence and ends the process, because LibTorch's destructors
// would wait for ranks that may be gone.
int TrainMain(int argc, char** argv, const Recipe& recipe);

}  // namespace muster::trainer
