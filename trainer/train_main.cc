#include "trainer/train_main.h"

#include <filesystem>

#include "trainer/app/commands.h"
#include "trainer/app/program.h"

namespace muster::trainer {

int TrainMain(int argc, char** argv, const Recipe& recipe) {
  const std::string program =
      argc > 0 && argv[0] != nullptr ? std::filesystem::path(argv[0]).filename().string() : "";
  const std::string name = program.empty() ? recipe.name : program;
  const absl::StatusOr<Registry> registry = RegistryOf(recipe, name);
  if (!registry.ok()) FailProgram(name, registry.status());
  return RunProgram(argc, argv, *registry, {{"consolidate", RunConsolidate}, {"eval", RunEval}});
}

}  // namespace muster::trainer
