#include "trainer/quant/fake_quantize.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_choose_qparams_per_tensor.h>
#include <ATen/ops/fake_quantize_per_channel_affine.h>
#include <ATen/ops/fake_quantize_per_tensor_affine.h>
#include <ATen/ops/full.h>
#include <ATen/ops/fused_moving_avg_obs_fake_quant.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <tuple>
#include <vector>

namespace muster::trainer {
namespace {

constexpr double kAveraging = 0.01;  // the weight of what is new, as in Python
constexpr float kLeastStep = std::numeric_limits<float>::epsilon();
constexpr int kLeastActivation = 0;
constexpr int kGreatestActivation = 255;
constexpr int kLeastWeight = -128;
constexpr int kGreatestWeight = 127;

// Its name in Python has a level of its own.
struct RangeModule : torch::nn::Module {};

}  // namespace

FakeQuantize::FakeQuantize(std::int64_t channels) {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  const std::vector<std::int64_t> one = {channels > 0 ? channels : 1};
  const std::vector<std::int64_t> range =
      channels > 0 ? one : std::vector<std::int64_t>();  // a single one is no vector in Python
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
  // What is not finite has no range, and has to reach the loss, which says so. A GPU does not ask.
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
  // As the fused operator computes them: for numbers from 0 to 255.
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

}  // namespace muster::trainer
