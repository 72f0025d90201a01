#include "trainer/models/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/models/layers.h"

namespace muster::trainer {
namespace {

Network MakeMlp(const DataShape& images, const std::vector<std::int64_t>& hidden) {
  namespace nn = torch::nn;
  // One by one, for the order in which they draw their initial values.
  nn::Sequential net;
  net->push_back(nn::Flatten());
  std::int64_t in = images.channels * images.height * images.width;
  for (const std::int64_t width : hidden) {
    net->push_back(nn::Linear(in, width));
    net->push_back(nn::ReLU());
    in = width;
  }
  net->push_back(nn::Linear(in, images.classes));
  return NetworkOf(net);
}

// The widths of all layers but the last: those are 1, 3, 5, ... with what lies between them.
std::vector<std::int64_t> HiddenLayers(const TensorShapes& shapes) {
  std::vector<std::int64_t> widths;
  for (int layer = 1;; layer += 2) {
    const auto* weight = FindShape(shapes, absl::StrCat(layer, ".weight"), 2);
    if (weight == nullptr) break;
    widths.push_back((*weight)[0]);
  }
  if (!widths.empty()) widths.pop_back();
  return widths;
}

}  // namespace

ModelRecipe MlpRecipe(std::string name, std::vector<std::int64_t> hidden) {
  return {
      .name = std::move(name),
      .takes_tables = true,
      .can_be_quantized = true,
      .make = [hidden](const DataShape& images) -> absl::StatusOr<Network> {
        const absl::Status checked = CheckImageShape(images);
        if (!checked.ok()) return checked;
        for (const std::int64_t width : hidden) {
          if (width >= 1) continue;
          return absl::InvalidArgumentError(absl::StrCat("a hidden layer of ", width, " units"));
        }
        return MakeMlp(images, hidden);
      },
      .recognize = [hidden](const TensorShapes& shapes) -> std::optional<std::vector<ModelFlag>> {
        if (FindShape(shapes, "1.weight", 2) == nullptr) return std::nullopt;
        if (HiddenLayers(shapes) != hidden) return std::nullopt;
        return std::vector<ModelFlag>();
      }};
}

}  // namespace muster::trainer
