#include "trainer/models/cnn.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/models/layers.h"

namespace muster::trainer {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kFirst = 16;
constexpr std::int64_t kSecond = 32;
constexpr std::int64_t kHidden = 128;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, /*kernel_size=*/3).padding(1));
}

// Layers are pushed one by one: as arguments of one constructor they would be made in an order of
// the compiler's choice, and draw their initial values in that order.
// Pooling before the ReLU gives the same numbers as after it, from a quarter of the elements.
Network MakeCnn(const DataShape& images) {
  nn::Sequential net;
  net->push_back(Convolution(images.channels, kFirst));
  net->push_back(nn::MaxPool2d(2));
  net->push_back(nn::ReLU());
  net->push_back(Convolution(kFirst, kSecond));
  net->push_back(nn::MaxPool2d(2));
  net->push_back(nn::ReLU());
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(kSecond * (images.height / 4) * (images.width / 4), kHidden));
  net->push_back(nn::ReLU());
  net->push_back(nn::Linear(kHidden, images.classes));
  return NetworkOf(net);
}

}  // namespace

ModelRecipe CnnRecipe() {
  return {.name = "cnn",
          .can_be_quantized = true,
          .make = [](const DataShape& images) -> absl::StatusOr<Network> {
            const absl::Status checked = CheckImageShape(images);
            if (!checked.ok()) return checked;
            if (images.height < 4 || images.width < 4) {
              return absl::InvalidArgumentError(
                  absl::StrCat("images of ", images.height, " x ", images.width,
                               " pixels are too small to be halved twice"));
            }
            return MakeCnn(images);
          },
          .recognize = [](const TensorShapes& shapes) -> std::optional<std::vector<ModelFlag>> {
            if (FindShape(shapes, "0.weight", 4) == nullptr) return std::nullopt;
            return std::vector<ModelFlag>();
          }};
}

}  // namespace muster::trainer
