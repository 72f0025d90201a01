// A network layer trained for conversion to 8-bit numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/options/conv.h>

#include "absl/status/status.h"

#include "trainer/models/network.h"

namespace muster::trainer {

// Simulates, in floats, what a layer's weights or activations will be as 8-bit numbers.

// Behaviour in training. In evaluation, values are rounded and nothing is observed.
enum class QatPhase {
  kObserve,  // ranges are observed, values are unchanged
  kRound,    // ranges are observed, values are rounded
  kFrozen,   // ranges are fixed, values are rounded
};

// Rounds a tensor to 256 steps of an observed range: a moving average of the least and the greatest
// value. Values inside the range pass their gradient unchanged, others get none. Buffers have the
// names, types and order of Python's FusedMovingAvgObsFakeQuantize. CPU, float32; one thread.
class FakeQuantize : public torch::nn::Module {
 public:
  // Sets the phase, and its copy in the buffers for Python.
  void SetPhase(QatPhase phase);

  // Whether a range has been observed; before, nothing is rounded.
  bool observed() const;

  const at::Tensor& scale() const { return scale_; }
  const at::Tensor& zero_point() const { return zero_point_; }
  const at::Tensor& min_val() const { return min_val_; }
  const at::Tensor& max_val() const { return max_val_; }

 protected:
  // One range for each of `channels`, or a single range if that is 0. All buffers have their final
  // size, so they can be collected at once.
  explicit FakeQuantize(std::int64_t channels);

  bool observes() const { return is_training() && phase_ != QatPhase::kFrozen; }
  bool rounds() const { return (!is_training() || phase_ != QatPhase::kObserve) && observed(); }

  // They share their tensors with the buffers registered above.
  at::Tensor fake_quant_enabled_;
  at::Tensor observer_enabled_;
  at::Tensor scale_;       // float32, a single one or one per channel
  at::Tensor zero_point_;  // int32, likewise
  at::Tensor min_val_;     // infinite until there is a range
  at::Tensor max_val_;

 private:
  QatPhase phase_ = QatPhase::kObserve;
};

// Activations: one range per tensor, as numbers from 0 to 255.
class ActivationFakeQuantize : public FakeQuantize {
 public:
  ActivationFakeQuantize() : FakeQuantize(/*channels=*/0) {}

  // A tensor that is not finite is returned unchanged, and not observed.
  at::Tensor Apply(const at::Tensor& x);

  // Rounds `x` when Apply() would, without observing: for tensors that share another one's range.
  at::Tensor Round(const at::Tensor& x) const;

  // Sets the range to `least` and `greatest` (float32, one number each), and derives scale and zero
  // point. Does nothing if either is NaN.
  void SetRange(const at::Tensor& least, const at::Tensor& greatest);
};

// Weights: a symmetric range for each output channel (dimension 0), as numbers from -128 to 127
// around a zero point of 0, which oneDNN's 8-bit layers need. (LibTorch's fused operator gives a
// channel whose weights all have one sign another zero point.)
class WeightFakeQuantize : public FakeQuantize {
 public:
  explicit WeightFakeQuantize(std::int64_t channels) : FakeQuantize(channels) {}

  at::Tensor Apply(const at::Tensor& weight);

 private:
  void Observe(const at::Tensor& weight);
};

// The batch normalization after a convolution.
struct QatNorm {
  std::shared_ptr<torch::nn::Module> module;
  BatchNormParts parts;
  // In training, with the batch's statistics.
  std::function<at::Tensor(const at::Tensor&)> forward;

  // The factor per channel in evaluation: gamma / sqrt(running_var + epsilon).
  at::Tensor factor() const;
};

// A layer with the steps computed together with it: batch normalization, pooling, ReLU, and the
// rounding of the result. Pooling, ReLU and rounding are monotonic, so their order does not matter.
struct QatLayer {
  std::string name;  // the layer's name in the network: "layer1.0.conv1"
  // One of them, or none: then it flattens images to vectors (Flatten).
  std::shared_ptr<torch::nn::LinearImpl> linear;
  std::shared_ptr<torch::nn::Conv2dImpl> convolution;
  std::shared_ptr<torch::nn::AdaptiveAvgPool2dImpl> average;
  QatNorm norm;  // null module: none
  std::vector<std::shared_ptr<torch::nn::MaxPool2dImpl>> pools;
  bool relu = false;
  // Null without weights.
  std::shared_ptr<WeightFakeQuantize> weight_rounding;
  std::shared_ptr<ActivationFakeQuantize> output_rounding;
  // For an average: the rounding of its inputs, whose steps its outputs share.
  std::shared_ptr<ActivationFakeQuantize> input_rounding;

  const at::Tensor& weight() const { return linear ? linear->weight : convolution->weight; }
  const at::Tensor& bias() const { return linear ? linear->bias : convolution->bias; }
  // Weight and bias with the batch normalization of evaluation folded in; without one, the layer's
  // own. The bias is undefined if there is none. They need no gradient.
  at::Tensor FoldedWeight() const;
  at::Tensor FoldedBias() const;

  // With rounding according to the mode. As in Python's nn.intrinsic.qat.ConvBn2d, a convolution's
  // weights are rounded after multiplication by the normalization's factor, and its result is
  // divided by that before the normalization.
  at::Tensor Run(const at::Tensor& inputs) const;
  // As in evaluation, without rounding.
  at::Tensor FloatRun(const at::Tensor& inputs) const;
};

// The layer as a module under its name in the state dict, with Python's names after preparation:
// "weight", "bias", "bn", "weight_fake_quant" and "activation_post_process".
std::shared_ptr<torch::nn::Module> ModuleOf(const QatLayer& layer);

// Adds `module` to `layers`: as the next layer, or as a step of the previous one. kInvalidArgument
// and one sentence, with nothing changed, if it cannot be quantized there.
absl::Status AddQatLayer(const std::string& name, const std::shared_ptr<torch::nn::Module>& module,
                         std::vector<QatLayer>& layers);

// The padding of a convolution.

// The zero padding of an image, height and width; nullopt for other padding. The variant type is
// LibTorch's own before version 2, then the standard library's; get_if is found by
// argument-dependent lookup.
inline std::optional<torch::ExpandingArray<2>> PaddingOf(
    const torch::nn::detail::ConvNdOptions<2>& options) {
  const auto* numbers = get_if<torch::ExpandingArray<2>>(&options.padding());
  const auto* zeros = get_if<torch::enumtype::kZeros>(&options.padding_mode());
  if (numbers == nullptr || zeros == nullptr) return std::nullopt;
  return *numbers;
}

}  // namespace muster::trainer
