#include "trainer/models/registry.h"

#include <algorithm>

#include "trainer/data/datasets.h"
#include "trainer/models/gpt.h"
#include "trainer/models/guarded.h"
#include "trainer/models/image_models.h"

namespace muster::trainer {

const ModelRecipe* Registry::FindModel(const std::string& name) const {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const ModelRecipe& model) { return model.name == name; });
  return found == models.end() ? nullptr : &*found;
}

const DataRecipe* Registry::FindDataSet(const std::string& name, DataShape::Kind kind) const {
  const DataRecipe* of_another_kind = nullptr;
  for (const DataRecipe& data : data_sets) {
    if (!name.empty() && data.name != name) continue;
    if (data.kind == kind) return &data;
    if (of_another_kind == nullptr) of_another_kind = &data;
  }
  return of_another_kind;
}

const ModelRecipe& Registry::DefaultModel(const std::string& data_set) const {
  const DataRecipe* data = FindDataSet(data_set, DataShape::Kind::kTable);
  if (data == nullptr || data->kind != DataShape::Kind::kTable) return models.front();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [](const ModelRecipe& model) { return model.takes_tables; });
  return found == models.end() ? models.front() : *found;
}

bool Registry::Takes(DataShape::Kind kind) const {
  return std::any_of(models.begin(), models.end(),
                     [kind](const ModelRecipe& model) { return model.takes == kind; });
}

Registry BuiltInRecipes() {
  using Kind = DataShape::Kind;
  Registry registry;
  registry.default_data = "/usr/share/datasets/fashion-mnist";
  registry.models = {CnnRecipe(), GptRecipe(), MlpRecipe("mlp", {256, 256}),
                     MlpRecipe("mlp-large", {4096, 4096, 1024}), ResNet18Recipe()};
  registry.data_sets = {
      {.name = "idx", .kind = Kind::kImages, .open = OpenIdx},
      {.name = "cifar10",
       .kind = Kind::kImages,
       .needs_data = "--dataset cifar10 needs --data, the directory of its files",
       .open = OpenCifar10},
      {.name = "folder",
       .kind = Kind::kImages,
       .needs_data = "--dataset folder needs --data, a directory with a folder for each class",
       .reads_test_data = true,
       .open = OpenFolder},
      {.name = "csv",
       .kind = Kind::kTable,
       .needs_data = "--dataset csv needs --data, its file",
       .reads_test_data = true,
       .open = OpenTable},
      {.name = "text",
       .kind = Kind::kText,
       .needs_data =
           "a text is needed: name a file with --data, or have one made up with --dataset "
           "generated",
       .reads_test_data = true,
       .open = OpenText},
      {.name = "tokens",
       .kind = Kind::kText,
       .needs_data = "--dataset tokens needs --data, its files",
       .reads_test_data = true,
       .open = OpenTokens},
      {.name = "generated",
       .kind = Kind::kImages,
       .title = "generated images",
       .open = OpenGeneratedImages},
      {.name = "generated",
       .kind = Kind::kText,
       .title = "generated text",
       .open = OpenGeneratedText}};
  return registry;
}

absl::StatusOr<Registry> RegistryOf(const Recipe& plain, const std::string& program) {
  const absl::Status complete = CheckRecipe(plain);
  if (!complete.ok()) return complete;
  const Recipe recipe = Guarded(plain);
  return Registry{.program = program,
                  .models = {{.name = recipe.name,
                              .takes = recipe.kind,
                              .add_flags = recipe.flags,
                              .make = recipe.model,
                              .objective = {recipe.loss, recipe.metrics, recipe.loss_with},
                              .updates = recipe.updates}},
                  .data_sets = {{.name = recipe.name,
                                 .kind = recipe.kind,
                                 .title = "data of its own",
                                 .open = recipe.data}}};
}

}  // namespace muster::trainer
