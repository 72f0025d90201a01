#include "trainer/models/image_models.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/models/batch_norm_layer.h"
#include "trainer/models/network.h"

namespace muster::trainer {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kFirst = 16;
constexpr std::int64_t kSecond = 32;
constexpr std::int64_t kHidden = 128;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, /*kernel_size=*/3).padding(1));
}

// Layers are pushed one by one: as arguments of one constructor they would be created, and draw
// their initial values, in an unspecified order. Pooling before the ReLU gives the same numbers as
// after it, from a quarter of the elements.
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

namespace {

Network MakeMlp(const DataShape& images, const std::vector<std::int64_t>& hidden) {
  // One by one, to fix the order in which they draw their initial values.
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

// The widths of all layers but the last: indices 1, 3, 5, ..., with activations in between.
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

namespace {

// The values of --stem.
constexpr char kSmall[] = "small";
constexpr char kImageNet[] = "imagenet";

constexpr std::array<std::int64_t, 4> kWidths = {64, 128, 256, 512};
constexpr int kBlocksPerLayer = 2;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out, int kernel, int stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// The shortcut around a block whose input and output differ in shape: a 1 x 1 convolution.
class Shortcut : public nn::Module {
 public:
  Shortcut(std::int64_t in, std::int64_t out, int stride,
           const std::shared_ptr<BatchNormFunction>& norm)
      : conv_(register_module("0", Convolution(in, out, /*kernel=*/1, stride))),
        norm_(register_module("1", std::make_shared<BatchNorm>(out, norm))) {}

  at::Tensor Forward(const at::Tensor& x) { return norm_->Forward(conv_(x)); }
  std::vector<NamedLayer> layers() const {
    return {{"downsample.0", conv_.ptr()}, {"downsample.1", norm_}};
  }

 private:
  nn::Conv2d conv_;
  const std::shared_ptr<BatchNorm> norm_;
};

class BasicBlock : public nn::Module, public ResidualBlock {
 public:
  // `shortcut` was created before this block, as in torchvision, but is registered after its
  // layers.
  BasicBlock(std::int64_t in, std::int64_t out, int stride, std::shared_ptr<Shortcut> shortcut,
             const std::shared_ptr<BatchNormFunction>& norm)
      : conv1_(register_module("conv1", Convolution(in, out, /*kernel=*/3, stride))),
        bn1_(register_module("bn1", std::make_shared<BatchNorm>(out, norm))),
        conv2_(register_module("conv2", Convolution(out, out, /*kernel=*/3, /*stride=*/1))),
        bn2_(register_module("bn2", std::make_shared<BatchNorm>(out, norm))),
        shortcut_(std::move(shortcut)) {
    if (shortcut_) register_module("downsample", shortcut_);
  }

  at::Tensor Forward(const at::Tensor& x) {
    at::Tensor y = bn1_->Forward(conv1_(x)).relu_();
    y = bn2_->Forward(conv2_(y));
    y += shortcut_ ? shortcut_->Forward(x) : x;
    return y.relu_();
  }

  std::vector<NamedLayer> body() const override {
    return {{"conv1", conv1_.ptr()},
            {"bn1", bn1_},
            {"", std::make_shared<nn::ReLUImpl>()},
            {"conv2", conv2_.ptr()},
            {"bn2", bn2_}};
  }
  std::vector<NamedLayer> shortcut() const override {
    return shortcut_ ? shortcut_->layers() : std::vector<NamedLayer>();
  }

 private:
  nn::Conv2d conv1_;
  const std::shared_ptr<BatchNorm> bn1_;
  nn::Conv2d conv2_;
  const std::shared_ptr<BatchNorm> bn2_;
  const std::shared_ptr<Shortcut> shortcut_;  // null: identity
};

// `index` counts the blocks of all layers from 0.
std::string BlockName(std::size_t index) {
  return absl::StrCat("layer", index / kBlocksPerLayer + 1, ".", index % kBlocksPerLayer);
}

class ResNet18 : public nn::Module, public LayerChain {
 public:
  ResNet18(const DataShape& images, bool imagenet_stem,
           const std::shared_ptr<BatchNormFunction>& norm)
      : pools_(imagenet_stem),
        // Of both stems only conv1 has weights.
        conv1_(register_module(
            "conv1", Convolution(images.channels, kWidths[0], /*kernel=*/imagenet_stem ? 7 : 3,
                                 /*stride=*/imagenet_stem ? 2 : 1))),
        bn1_(register_module("bn1", std::make_shared<BatchNorm>(kWidths[0], norm))) {
    std::int64_t in = kWidths[0];
    for (std::size_t i = 0; i < kWidths.size(); ++i) {
      const auto layer =
          register_module("layer" + std::to_string(i + 1), std::make_shared<nn::Module>());
      for (int block = 0; block < kBlocksPerLayer; ++block) {
        const int stride = i > 0 && block == 0 ? 2 : 1;
        const std::int64_t out = kWidths[i];
        std::shared_ptr<Shortcut> shortcut;
        if (in != out) shortcut = std::make_shared<Shortcut>(in, out, stride, norm);
        blocks_.push_back(std::make_shared<BasicBlock>(in, out, stride, shortcut, norm));
        layer->register_module(std::to_string(block), blocks_.back());
        in = out;
      }
    }
    fc_ = register_module("fc", nn::Linear(in, images.classes));
    // Only now, after all layers have drawn their initial values.
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<nn::Conv2d>()) {
        nn::init::kaiming_normal_(conv->weight, /*a=*/0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  at::Tensor Stem(const at::Tensor& images) {
    const at::Tensor x = bn1_->Forward(conv1_(images)).relu_();
    return pools_ ? at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1) : x;
  }
  const std::vector<std::shared_ptr<BasicBlock>>& blocks() const { return blocks_; }
  at::Tensor Head(const at::Tensor& x) {
    return fc_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  std::vector<NamedLayer> layers() const override {
    std::vector<NamedLayer> all = {
        {"conv1", conv1_.ptr()}, {"bn1", bn1_}, {"", std::make_shared<nn::ReLUImpl>()}};
    if (pools_) {
      all.push_back({"", nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)).ptr()});
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) all.push_back({BlockName(i), blocks_[i]});
    all.push_back({"", nn::AdaptiveAvgPool2d(1).ptr()});
    all.push_back({"", nn::Flatten().ptr()});
    all.push_back({"fc", fc_.ptr()});
    return all;
  }

 private:
  const bool pools_;
  nn::Conv2d conv1_;
  const std::shared_ptr<BatchNorm> bn1_;
  std::vector<std::shared_ptr<BasicBlock>> blocks_;  // of all layers, in order
  nn::Linear fc_{nullptr};
};

Network MakeResNet18(const DataShape& images, bool imagenet_stem) {
  const auto norm = std::make_shared<BatchNormFunction>(LocalBatchNorm);
  const auto net = std::make_shared<ResNet18>(images, imagenet_stem, norm);
  Network network{
      .module = net, .batch_norm = norm, .takes_images = true, .draws_random_numbers = false};
  network.stages.push_back(
      {"conv1", [net](const at::Tensor& x) { return net->Stem(x); }, {"conv1", "bn1"}});
  for (std::size_t i = 0; i < net->blocks().size(); ++i) {
    network.stages.push_back({BlockName(i), [block = net->blocks()[i]](const at::Tensor& x) {
                                return block->Forward(x);
                              }});
  }
  network.stages.push_back({"fc", [net](const at::Tensor& x) { return net->Head(x); }});
  return network;
}

// The stem only shows in the first convolution.
std::optional<std::vector<ModelFlag>> RecognizeResNet18(const TensorShapes& shapes) {
  constexpr std::int64_t kSmallKernel = 3;
  const auto* stem = FindShape(shapes, "conv1.weight", 4);
  if (stem == nullptr || FindShape(shapes, "layer1.0.conv1.weight", 4) == nullptr) {
    return std::nullopt;
  }
  return std::vector<ModelFlag>{{"--stem", (*stem)[2] == kSmallKernel ? kSmall : kImageNet}};
}

}  // namespace

ModelRecipe ResNet18Recipe(const char* stem) {
  const auto chosen = std::make_shared<std::string>(stem);
  return {.name = "resnet18",
          .can_be_quantized = true,
          .add_flags =
              [chosen](FlagSet& flags) {
                flags.Choice(
                    "--stem", *chosen, {kImageNet, kSmall},
                    "For resnet18: torchvision's own, or one for images of some 32 pixels");
              },
          .make = [chosen](const DataShape& images) -> absl::StatusOr<Network> {
            const absl::Status checked = CheckImageShape(images);
            if (!checked.ok()) return checked;
            return MakeResNet18(images, *chosen == kImageNet);
          },
          .recognize = RecognizeResNet18};
}

Network NetworkOf(const torch::nn::Sequential& net) {
  Network network{.module = net.ptr(), .takes_images = true, .draws_random_numbers = false};
  for (const torch::nn::AnyModule& layer : *net) {
    network.stages.push_back(
        {std::to_string(network.stages.size()),
         [layer = layer](const at::Tensor& inputs) mutable { return layer.forward(inputs); }});
  }
  return network;
}

}  // namespace muster::trainer
