#include "test/trainer/models/small_residual.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <memory>
#include <vector>

#include "trainer/models/network.h"

namespace muster::trainer {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kNarrow = 8;
constexpr std::int64_t kWide = 16;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out, int kernel, bool bias = false) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).bias(bias));
}

class PlainBlock : public nn::Module, public ResidualBlock {
 public:
  PlainBlock(std::int64_t in, std::int64_t out) {
    conv1_ = register_module("conv1", Convolution(in, out, 3));
    bn1_ = register_module("bn1", nn::BatchNorm2d(out));
    conv2_ = register_module("conv2", Convolution(out, out, 3));
    bn2_ = register_module("bn2", nn::BatchNorm2d(out));
    if (in == out) return;
    shortcut_ = register_module("downsample",
                                nn::Sequential(Convolution(in, out, 1), nn::BatchNorm2d(out)));
  }

  at::Tensor Forward(const at::Tensor& x) {
    const at::Tensor y = bn2_(conv2_(at::relu(bn1_(conv1_(x)))));
    return at::relu(y + (shortcut_ ? shortcut_->forward(x) : x));
  }
  std::vector<NamedLayer> body() const override {
    return {{"conv1", conv1_.ptr()},
            {"bn1", bn1_.ptr()},
            {"", std::make_shared<nn::ReLUImpl>()},
            {"conv2", conv2_.ptr()},
            {"bn2", bn2_.ptr()}};
  }
  std::vector<NamedLayer> shortcut() const override {
    if (!shortcut_) return {};
    return {{"downsample", shortcut_.ptr()}};
  }

 private:
  nn::Conv2d conv1_{nullptr};
  nn::BatchNorm2d bn1_{nullptr};
  nn::Conv2d conv2_{nullptr};
  nn::BatchNorm2d bn2_{nullptr};
  nn::Sequential shortcut_{nullptr};
};

class Net : public nn::Module, public LayerChain {
 public:
  explicit Net(std::int64_t channels) {
    stem_ = register_module("stem",
                            nn::Sequential(Convolution(channels, kNarrow, 3, /*bias=*/true),
                                           nn::BatchNorm2d(kNarrow), nn::ReLU(), nn::MaxPool2d(2)));
    block1_ = register_module("block1", std::make_shared<PlainBlock>(kNarrow, kNarrow));
    block2_ = register_module("block2", std::make_shared<PlainBlock>(kNarrow, kWide));
    fc_ = register_module("fc", nn::Linear(kWide, 10));
  }

  at::Tensor Forward(const at::Tensor& x) {
    const at::Tensor y = block2_->Forward(block1_->Forward(stem_->forward(x)));
    return fc_(at::adaptive_avg_pool2d(y, {1, 1}).flatten(1));
  }
  std::vector<NamedLayer> layers() const override {
    return {{"stem", stem_.ptr()},     {"block1", block1_},
            {"block2", block2_},       {"", nn::AdaptiveAvgPool2d(1).ptr()},
            {"", nn::Flatten().ptr()}, {"fc", fc_.ptr()}};
  }

 private:
  nn::Sequential stem_{nullptr};
  std::shared_ptr<PlainBlock> block1_;
  std::shared_ptr<PlainBlock> block2_;
  nn::Linear fc_{nullptr};
};

}  // namespace

Network SmallResidual(std::int64_t channels) {
  const auto net = std::make_shared<Net>(channels);
  Network network{.module = net, .takes_images = true, .draws_random_numbers = false};
  network.stages.push_back({"",
                            [net](const at::Tensor& x) { return net->Forward(x); },
                            {"stem", "block1", "block2", "fc"}});
  return network;
}

}  // namespace muster::trainer
