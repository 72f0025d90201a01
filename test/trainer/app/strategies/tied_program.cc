// Trains a GPT whose scores are computed with its token embeddings: the first and the last stage
// share a parameter.
#include <memory>

#include "trainer/models/gpt.h"
#include "trainer/models/registry.h"
#include "trainer/train_main.h"

namespace mt = muster::trainer;

int main(int argc, char** argv) {
  const mt::Registry built_in = mt::BuiltInRecipes();
  const mt::Recipe recipe = {
      .name = "tied",
      .kind = mt::DataShape::Kind::kText,
      .data = built_in.FindDataSet("generated", mt::DataShape::Kind::kText)->open,
      .model = mt::GptRecipe({.layers = 2, .heads = 4, .width = 16, .tie_weights = true}).make};
  return mt::TrainMain(argc, argv, recipe);
}
