#include "trainer/app/commands/state_dict_model.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

// The shape of `name` if it is there and has `dimensions`; else null.
const std::vector<std::int64_t>* Find(const TensorShapes& shapes, const std::string& name,
                                      std::size_t dimensions) {
  const auto found = shapes.find(name);
  return found != shapes.end() && found->second.size() == dimensions ? &found->second : nullptr;
}

GptOptions GptOf(const TensorShapes& shapes, const std::vector<std::int64_t>& tokens,
                 const std::vector<std::int64_t>& places) {
  GptOptions gpt;
  gpt.vocabulary = tokens[0];
  gpt.width = tokens[1];
  gpt.context = places[0];
  gpt.layers = 0;
  while (Find(shapes, absl::StrCat("transformer.h.", gpt.layers, ".ln_1.weight"), 1) != nullptr) {
    ++gpt.layers;
  }
  return gpt;
}

// The widths of all layers but the last: those are 1, 3, 5, ... with what lies between them.
std::vector<std::int64_t> HiddenLayers(const TensorShapes& shapes) {
  std::vector<std::int64_t> widths;
  for (int layer = 1;; layer += 2) {
    const auto* weight = Find(shapes, absl::StrCat(layer, ".weight"), 2);
    if (weight == nullptr) break;
    widths.push_back((*weight)[0]);
  }
  widths.pop_back();
  return widths;
}

}  // namespace

absl::StatusOr<ModelOptions> ModelOfStateDict(const TensorShapes& shapes) {
  ModelOptions model;
  const auto* tokens = Find(shapes, "transformer.wte.weight", 2);
  const auto* places = Find(shapes, "transformer.wpe.weight", 2);
  if (tokens != nullptr && places != nullptr) {
    model.kind = ModelKind::kGpt;
    model.gpt = GptOf(shapes, *tokens, *places);
    return model;
  }
  const auto* stem = Find(shapes, "conv1.weight", 4);
  if (stem != nullptr && Find(shapes, "layer1.0.conv1.weight", 4) != nullptr) {
    constexpr std::int64_t kSmallStemKernel = 3;
    model.kind = ModelKind::kResNet18;
    model.stem = (*stem)[2] == kSmallStemKernel ? ResNetStem::kSmall : ResNetStem::kImageNet;
    return model;
  }
  if (Find(shapes, "0.weight", 4) != nullptr) {
    model.kind = ModelKind::kCnn;
    return model;
  }
  if (Find(shapes, "1.weight", 2) != nullptr) {
    model.kind = ModelKind::kMlp;
    model.hidden = HiddenLayers(shapes);
    return model;
  }
  return absl::InvalidArgumentError(
      "its parameters are not those of a model that muster-train has (cnn, gpt, mlp, mlp-large, "
      "resnet18)");
}

}  // namespace muster::trainer
