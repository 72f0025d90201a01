#include "trainer/train_main.h"

#include <filesystem>

#include "trainer/app/commands/consolidate.h"
#include "trainer/app/commands/eval.h"
#include "trainer/app/program.h"

namespace muster::trainer {

int TrainMain(int argc, char** argv, const Recipe& recipe) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "";
  return RunProgram(argc, argv, RegistryOf(recipe, program.empty() ? recipe.name : program),
                    {{"consolidate", RunConsolidate}, {"eval", RunEval}});
}

}  // namespace muster::trainer
