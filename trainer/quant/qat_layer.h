// A layer of a network that is trained for 8-bit numbers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "absl/status/status.h"

#include "trainer/models/batch_norm.h"
#include "trainer/quant/fake_quantize.h"

namespace muster::trainer {

// The batch normalization behind a convolution.
struct QatNorm {
  std::shared_ptr<torch::nn::Module> module;
  BatchNormParts parts;
  // In training, with the statistics of the batch.
  std::function<at::Tensor(const at::Tensor&)> forward;

  // What each channel is multiplied by in evaluation: gamma / sqrt(running_var + epsilon).
  at::Tensor factor() const;
};

// A layer with what follows it and is computed with it: batch normalization, pooling, ReLU, and the
// rounding of what comes out. Pooling and ReLU may come in any order: both keep the order of
// numbers, so the result is the same, and so is that of rounding before or after them.
struct QatLayer {
  std::string name;  // "layer1.0.conv1": of the layer in the network
  // One of them, or none: then it makes vectors of images (Flatten).
  std::shared_ptr<torch::nn::LinearImpl> linear;
  std::shared_ptr<torch::nn::Conv2dImpl> convolution;
  std::shared_ptr<torch::nn::AdaptiveAvgPool2dImpl> average;
  QatNorm norm;  // with a null module when there is none
  std::vector<std::shared_ptr<torch::nn::MaxPool2dImpl>> pools;
  bool relu = false;
  // Null without weights.
  std::shared_ptr<WeightFakeQuantize> weight_rounding;
  std::shared_ptr<ActivationFakeQuantize> output_rounding;
  // Of an average: the rounding of its inputs, whose steps its outputs have, too.
  std::shared_ptr<ActivationFakeQuantize> input_rounding;

  const at::Tensor& weight() const { return linear ? linear->weight : convolution->weight; }
  const at::Tensor& bias() const { return linear ? linear->bias : convolution->bias; }
  // Those that do the work of the batch normalization in evaluation as well; without one, the
  // layer's own. The bias is undefined if there is none. They need no gradient.
  at::Tensor FoldedWeight() const;
  at::Tensor FoldedBias() const;

  // With the rounding of this mode. As Python's nn.intrinsic.qat.ConvBn2d does, a convolution's
  // weights are rounded when they are multiplied by the normalization's factor, and its result is
  // divided by that before the normalization itself.
  at::Tensor Run(const at::Tensor& inputs) const;
  // In evaluation, without any rounding.
  at::Tensor FloatRun(const at::Tensor& inputs) const;
};

// The layer as a module under its name in the state dict, as Python has it once it is prepared:
// "weight", "bias", "bn", "weight_fake_quant" and "activation_post_process".
std::shared_ptr<torch::nn::Module> ModuleOf(const QatLayer& layer);

// Adds `module` to `layers`: as the next one, or to the one that it follows. kInvalidArgument and
// one sentence, with nothing changed, when it cannot be quantized there.
absl::Status AddQatLayer(const std::string& name, const std::shared_ptr<torch::nn::Module>& module,
                         std::vector<QatLayer>& layers);

}  // namespace muster::trainer
