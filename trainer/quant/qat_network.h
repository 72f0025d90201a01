// A network that is trained so that it can be converted to 8-bit numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "absl/status/statusor.h"

#include "trainer/models/model_recipe.h"
#include "trainer/models/network.h"
#include "trainer/quant/fake_quantize.h"

namespace muster::trainer {

// A layer with what follows it and is computed with it: pooling, ReLU, and the rounding of what
// comes out. Pooling and ReLU may come in any order: both keep the order of numbers, so the result
// is the same, and so is that of rounding before or after them.
struct QatLayer {
  std::string name;  // "1": of the layer in the network
  // One of them, or neither: then it makes vectors of images (Flatten).
  std::shared_ptr<torch::nn::LinearImpl> linear;
  std::shared_ptr<torch::nn::Conv2dImpl> convolution;
  std::vector<std::shared_ptr<torch::nn::MaxPool2dImpl>> pools;
  bool relu = false;
  // Null for Flatten.
  std::shared_ptr<WeightFakeQuantize> weight_rounding;
  std::shared_ptr<ActivationFakeQuantize> output_rounding;

  const at::Tensor& weight() const { return linear ? linear->weight : convolution->weight; }
  const at::Tensor& bias() const { return linear ? linear->bias : convolution->bias; }
};

// The module. Its state dict has the parameters' names of the network that it is made of, and those
// buffers that Python's torch.ao.quantization.prepare_qat adds when each layer is fused with its
// ReLU and a QuantStub called `quant` comes first: "quant.activation_post_process.scale",
// "1.weight_fake_quant.scale", "1.activation_post_process.activation_post_process.min_val".
class QatNetwork : public torch::nn::Module {
 public:
  explicit QatNetwork(std::vector<QatLayer> layers);

  const std::vector<QatLayer>& layers() const { return layers_; }
  const ActivationFakeQuantize& input_rounding() const { return *input_; }
  // All that observe activations, the input's first. Weights are the same on all ranks.
  const std::vector<std::shared_ptr<ActivationFakeQuantize>>& activations() const {
    return activations_;
  }

  void SetPhase(QatPhase phase);
  // Whether everything has a range, as after the first step; before, it cannot be converted.
  bool observed() const;

  at::Tensor RoundInput(const at::Tensor& inputs) { return input_->Apply(inputs); }
  // Layer `index` with the rounding of this mode.
  at::Tensor RunLayer(std::size_t index, const at::Tensor& inputs);
  // All layers, without any rounding.
  at::Tensor FloatForward(const at::Tensor& inputs) const;

  // Of the weights, without biases: as floats, and as 8-bit numbers.
  std::int64_t float_bytes() const;
  std::int64_t int8_bytes() const { return float_bytes() / 4; }

 private:
  const std::vector<QatLayer> layers_;
  std::shared_ptr<ActivationFakeQuantize> input_;
  std::vector<std::shared_ptr<ActivationFakeQuantize>> activations_;
};

// `network`, whose module must be a torch::nn::Sequential of Linear, Conv2d, ReLU, MaxPool2d and
// Flatten, with its layers' parameters. Its module is a QatNetwork. kInvalidArgument and one
// sentence when it is not, or when a layer cannot be converted.
absl::StatusOr<Network> PrepareQat(const Network& network);

// `recipe` with PrepareQat() of what it makes.
ModelRecipe QatRecipe(const ModelRecipe& recipe);

}  // namespace muster::trainer
