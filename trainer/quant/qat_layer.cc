#include "trainer/quant/qat_layer.h"

#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_choose_qparams_per_tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/fake_quantize_per_channel_affine.h>
#include <ATen/ops/fake_quantize_per_tensor_affine.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/fused_moving_avg_obs_fake_quant.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>

#include "absl/strings/str_cat.h"

#include "trainer/models/batch_norm_layer.h"

namespace muster::trainer {
namespace {

constexpr double kAveraging = 0.01;  // the weight of a new observation, as in Python
constexpr float kLeastStep = std::numeric_limits<float>::epsilon();
constexpr int kLeastActivation = 0;
constexpr int kGreatestActivation = 255;
constexpr int kLeastWeight = -128;
constexpr int kGreatestWeight = 127;

// In Python it adds a level to the names.
struct RangeModule : torch::nn::Module {};

}  // namespace

FakeQuantize::FakeQuantize(std::int64_t channels) {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  const std::vector<std::int64_t> one = {channels > 0 ? channels : 1};
  const std::vector<std::int64_t> range =
      channels > 0 ? one : std::vector<std::int64_t>();  // a single range is a scalar in Python
  fake_quant_enabled_ = register_buffer("fake_quant_enabled", at::zeros({1}, at::kLong));
  observer_enabled_ = register_buffer("observer_enabled", at::ones({1}, at::kLong));
  scale_ = register_buffer("scale", at::ones(one, at::kFloat));
  zero_point_ = register_buffer("zero_point", at::zeros(one, at::kInt));
  const auto observer = register_module("activation_post_process", std::make_shared<RangeModule>());
  observer->register_buffer("eps", at::full({1}, kLeastStep, at::kFloat));
  min_val_ = observer->register_buffer("min_val", at::full(range, kNever, at::kFloat));
  max_val_ = observer->register_buffer("max_val", at::full(range, -kNever, at::kFloat));
}

void FakeQuantize::SetPhase(QatPhase phase) {
  const at::NoGradGuard no_grad;
  phase_ = phase;
  observer_enabled_.fill_(phase == QatPhase::kFrozen ? 0 : 1);
  fake_quant_enabled_.fill_(phase == QatPhase::kObserve ? 0 : 1);
}

bool FakeQuantize::observed() const {
  return !at::isinf(min_val_).any().item<bool>();
}

at::Tensor ActivationFakeQuantize::Apply(const at::Tensor& x) {
  // A tensor that is not finite has no range, and must reach the loss, which reports it. Not
  // checked on a GPU, to avoid synchronization.
  if (is_training() && x.is_cpu() && !at::isfinite(x.detach().sum()).item<bool>()) return x;
  if (is_training()) {
    return at::fused_moving_avg_obs_fake_quant(
        x, observer_enabled_, fake_quant_enabled_, min_val_, max_val_, scale_, zero_point_,
        kAveraging, kLeastActivation, kGreatestActivation, /*ch_axis=*/-1);
  }
  return Round(x);
}

at::Tensor ActivationFakeQuantize::Round(const at::Tensor& x) const {
  if (!rounds()) return x;
  return at::fake_quantize_per_tensor_affine(x, scale_, zero_point_, kLeastActivation,
                                             kGreatestActivation);
}

void ActivationFakeQuantize::SetRange(const at::Tensor& least, const at::Tensor& greatest) {
  const at::NoGradGuard no_grad;
  if (at::isnan(least).item<bool>() || at::isnan(greatest).item<bool>()) return;
  min_val_.copy_(least.reshape({}));
  max_val_.copy_(greatest.reshape({}));
  if (!observed()) return;
  // Computed like in the fused operator: for numbers from 0 to 255.
  const auto [scale, zero_point] =
      at::_choose_qparams_per_tensor(at::stack({min_val_, max_val_}), /*reduce_range=*/false);
  scale_.fill_(scale);
  zero_point_.fill_(zero_point);
}

at::Tensor WeightFakeQuantize::Apply(const at::Tensor& weight) {
  if (observes()) Observe(weight);
  if (!rounds()) return weight;
  return at::fake_quantize_per_channel_affine(weight, scale_, zero_point_, /*axis=*/0, kLeastWeight,
                                              kGreatestWeight);
}

// Python's MovingAveragePerChannelMinMaxObserver.
void WeightFakeQuantize::Observe(const at::Tensor& weight) {
  const at::NoGradGuard no_grad;
  const at::Tensor rows = weight.detach().reshape({weight.size(0), -1});
  const at::Tensor least = rows.amin(1);
  const at::Tensor greatest = rows.amax(1);
  const at::Tensor first = at::isinf(min_val_);
  min_val_.copy_(at::where(first, least, min_val_ + kAveraging * (least - min_val_)));
  max_val_.copy_(at::where(first, greatest, max_val_ + kAveraging * (greatest - max_val_)));
  scale_.copy_(
      at::maximum(min_val_.div(kLeastWeight), max_val_.div(kGreatestWeight)).clamp_min(kLeastStep));
}

namespace {

namespace nn = torch::nn;

// Training divides by the factor, which is 0 if a network starts with a gamma of 0.
constexpr double kLeastFactor = 1e-5;

struct LayerModule : nn::Module {
  explicit LayerModule(const QatLayer& layer) {
    register_parameter("weight", layer.weight());
    if (layer.bias().defined()) register_parameter("bias", layer.bias());
    if (layer.norm.module) register_module("bn", layer.norm.module);
    register_module("weight_fake_quant", layer.weight_rounding);
    register_module("activation_post_process", layer.output_rounding);
  }
};

at::Tensor ForEachRow(const at::Tensor& factor) {
  return factor.reshape({-1, 1, 1, 1});
}

at::Tensor ForEachChannel(const at::Tensor& factor) {
  return factor.reshape({1, -1, 1, 1});
}

// Computed as in Python (fuse_conv_bn_weights): the last bit can decide a rounding.
at::Tensor InverseDeviation(const BatchNormParts& parts) {
  return (parts.running_var + parts.epsilon).rsqrt();
}

at::Tensor Linearly(const QatLayer& layer, const at::Tensor& weight, const at::Tensor& bias,
                    const at::Tensor& inputs) {
  if (layer.linear) return at::linear(inputs, weight, bias);
  const auto& options = layer.convolution->options;
  return at::conv2d(inputs, weight, bias, options.stride(), *PaddingOf(options), options.dilation(),
                    options.groups());
}

at::Tensor Normalized(const QatLayer& layer, const at::Tensor& inputs) {
  at::Tensor factor = layer.norm.factor();
  factor = at::where(factor.abs().lt(kLeastFactor), at::full_like(factor, kLeastFactor), factor);
  const at::Tensor weight = layer.weight_rounding->Apply(layer.weight() * ForEachRow(factor));
  at::Tensor x = Linearly(layer, weight, {}, inputs) / ForEachChannel(factor);
  if (layer.bias().defined()) x = x + ForEachChannel(layer.bias());
  return layer.norm.forward(x);
}

at::Tensor Finish(const QatLayer& layer, at::Tensor x) {
  for (const auto& pool : layer.pools) x = pool->forward(x);
  return layer.relu ? at::relu(x) : x;
}

// Null unless `module` is a batch normalization with all parts.
QatNorm NormIn(const std::shared_ptr<nn::Module>& module) {
  if (const auto own = std::dynamic_pointer_cast<BatchNorm>(module)) {
    return {own, own->parts(), [own](const at::Tensor& x) { return own->Forward(x); }};
  }
  const auto norm = std::dynamic_pointer_cast<nn::BatchNorm2dImpl>(module);
  if (!norm || !norm->options.affine() || !norm->options.track_running_stats()) return {};
  return {norm,
          {.weight = norm->weight,
           .bias = norm->bias,
           .running_mean = norm->running_mean,
           .running_var = norm->running_var,
           .num_batches_tracked = norm->num_batches_tracked,
           .epsilon = norm->options.eps()},
          [norm](const at::Tensor& x) { return norm->forward(x); }};
}

absl::Status CannotQuantize(const std::string& name, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--qat cannot quantize layer ", name, ", ", why,
                   "; it needs Linear, Conv2d with BatchNorm2d behind it or without, ReLU, "
                   "MaxPool2d, AdaptiveAvgPool2d and Flatten"));
}

// The layer that the next module can be merged with; null if there is none.
QatLayer* LastWithWeights(std::vector<QatLayer>& layers) {
  return !layers.empty() && layers.back().output_rounding ? &layers.back() : nullptr;
}

}  // namespace

at::Tensor QatNorm::factor() const {
  return parts.weight / (parts.running_var + parts.epsilon).sqrt();
}

at::Tensor QatLayer::FoldedWeight() const {
  const at::NoGradGuard no_grad;
  const at::Tensor own = weight().detach();
  if (!norm.module) return own;
  return own * ForEachRow(norm.parts.weight * InverseDeviation(norm.parts));
}

at::Tensor QatLayer::FoldedBias() const {
  const at::NoGradGuard no_grad;
  const at::Tensor own = bias().defined() ? bias().detach() : at::Tensor();
  if (!norm.module) return own;
  const BatchNormParts& parts = norm.parts;
  const at::Tensor centre = own.defined() ? own - parts.running_mean : -parts.running_mean;
  return parts.bias + centre * InverseDeviation(parts) * parts.weight;
}

at::Tensor QatLayer::Run(const at::Tensor& inputs) const {
  if (average) return input_rounding->Round(average->forward(inputs));
  if (!output_rounding) return inputs.flatten(1);
  const at::Tensor x = norm.module
                           ? Normalized(*this, inputs)
                           : Linearly(*this, weight_rounding->Apply(weight()), bias(), inputs);
  return output_rounding->Apply(Finish(*this, x));
}

at::Tensor QatLayer::FloatRun(const at::Tensor& inputs) const {
  if (average) return average->forward(inputs);
  if (!output_rounding) return inputs.flatten(1);
  return Finish(*this, Linearly(*this, FoldedWeight(), FoldedBias(), inputs));
}

std::shared_ptr<nn::Module> ModuleOf(const QatLayer& layer) {
  return std::make_shared<LayerModule>(layer);
}

absl::Status AddQatLayer(const std::string& name, const std::shared_ptr<nn::Module>& module,
                         std::vector<QatLayer>& layers) {
  QatLayer layer{.name = name};
  layer.linear = std::dynamic_pointer_cast<nn::LinearImpl>(module);
  layer.convolution = std::dynamic_pointer_cast<nn::Conv2dImpl>(module);
  layer.average = std::dynamic_pointer_cast<nn::AdaptiveAvgPool2dImpl>(module);
  if (layer.linear || layer.convolution) {
    if (layer.convolution && !PaddingOf(layer.convolution->options)) {
      return CannotQuantize(name, "whose padding is not a number of zeros");
    }
    layer.weight_rounding = std::make_shared<WeightFakeQuantize>(layer.weight().size(0));
    layer.output_rounding = std::make_shared<ActivationFakeQuantize>();
    layers.push_back(std::move(layer));
    return absl::OkStatus();
  }
  const auto* flatten = module->as<nn::FlattenImpl>();
  if (flatten != nullptr &&
      (flatten->options.start_dim() != 1 || flatten->options.end_dim() != -1)) {
    return CannotQuantize(name, "which does not make a vector of each sample");
  }
  if (flatten != nullptr || layer.average) {
    layers.push_back(std::move(layer));
    return absl::OkStatus();
  }
  QatLayer* const last = LastWithWeights(layers);
  if (module->as<nn::ReLUImpl>() != nullptr) {
    if (!last) return CannotQuantize(name, "a ReLU that follows no layer with weights");
    last->relu = true;
    return absl::OkStatus();
  }
  if (auto pool = std::dynamic_pointer_cast<nn::MaxPool2dImpl>(module)) {
    if (!last) return CannotQuantize(name, "a pooling that follows no layer with weights");
    last->pools.push_back(std::move(pool));
    return absl::OkStatus();
  }
  if (QatNorm norm = NormIn(module); norm.module) {
    if (!last || !last->convolution || last->norm.module || last->relu || !last->pools.empty()) {
      return CannotQuantize(name, "a batch normalization that is not right behind a convolution");
    }
    last->norm = std::move(norm);
    return absl::OkStatus();
  }
  return CannotQuantize(name, absl::StrCat("a ", module->name()));
}

}  // namespace muster::trainer
