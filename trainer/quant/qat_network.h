// A network trained for conversion to 8-bit numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "absl/status/statusor.h"

#include "trainer/models/network.h"
#include "trainer/models/recipe.h"
#include "trainer/quant/qat_layer.h"

namespace muster::trainer {

// Consecutive layers, or a ResidualBlock of them.
struct QatBlock {
  std::string name;  // "layer1.0"; the first layer's name if nothing is added
  std::vector<QatLayer> body;
  // For a residual block: the layers of the second summand; empty: the inputs themselves. A ReLU
  // follows.
  std::vector<QatLayer> shortcut;
  // For the sum; null if nothing is added.
  std::shared_ptr<ActivationFakeQuantize> sum_rounding;
};

// The module. Its state dict has the names of Python's torch.ao.quantization.prepare_qat if each
// layer is fused with its batch normalization and ReLU, a QuantStub called `quant` comes first, and
// blocks add with a FloatFunctional called `add_relu`: "quant.activation_post_process.scale",
// "layer1.0.conv1.bn.weight", "layer1.0.conv1.weight_fake_quant.scale",
// "layer1.0.add_relu.activation_post_process.activation_post_process.min_val".
class QatNetwork : public torch::nn::Module {
 public:
  explicit QatNetwork(std::vector<QatBlock> blocks);

  const std::vector<QatBlock>& blocks() const { return blocks_; }
  const ActivationFakeQuantize& input_rounding() const { return *input_; }
  // All activation observers, the input's first. Weights are the same on all ranks.
  const std::vector<std::shared_ptr<ActivationFakeQuantize>>& activations() const {
    return activations_;
  }

  void SetPhase(QatPhase phase);
  // Whether everything has a range, as after the first step; required for conversion.
  bool observed() const;

  at::Tensor RoundInput(const at::Tensor& inputs) { return input_->Apply(inputs); }
  // Block `index`, with rounding according to the mode.
  at::Tensor RunBlock(std::size_t index, const at::Tensor& inputs) const;
  // The whole network as in evaluation, without rounding.
  at::Tensor FloatForward(const at::Tensor& inputs) const;

  // Whether there is batch normalization; in training its statistics are per rank.
  bool normalizes() const;

  // The size of the weights, without biases: as floats, and as 8-bit numbers.
  std::int64_t float_bytes() const;
  std::int64_t int8_bytes() const { return float_bytes() / 4; }

 private:
  // All layers, body before shortcut.
  std::vector<const QatLayer*> layers() const;

  std::vector<QatBlock> blocks_;
  std::shared_ptr<ActivationFakeQuantize> input_;
  std::vector<std::shared_ptr<ActivationFakeQuantize>> activations_;
};

// `network` with its layers' parameters, as a QatNetwork. Its module must be a
// torch::nn::Sequential or a LayerChain of Linear, Conv2d (with batch normalization behind it or
// without), ReLU, MaxPool2d, AdaptiveAvgPool2d, Flatten, ResidualBlocks of these, and other such
// chains. kInvalidArgument and one sentence when it is not, or when a layer cannot be converted.
absl::StatusOr<Network> PrepareQat(const Network& network);

// `recipe` whose networks go through PrepareQat().
ModelRecipe QatRecipe(const ModelRecipe& recipe);

}  // namespace muster::trainer
