// What a layer's weights or activations will look like as 8-bit numbers, while they are floats.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace muster::trainer {

// What is done in training. In evaluation, values are rounded and nothing is observed.
enum class QatPhase {
  kObserve,  // ranges are observed, values pass unchanged
  kRound,    // ranges are observed, values are rounded
  kFrozen,   // ranges stay as they are, values are rounded
};

// Rounds a tensor to 256 steps of a range that it observes: a moving average of the least and the
// greatest value. The gradient of what is inside the range passes unchanged, and the rest gets
// none. Buffers have the names, types and order of Python's FusedMovingAvgObsFakeQuantize. CPU,
// float32; one thread.
class FakeQuantize : public torch::nn::Module {
 public:
  // As the phase says; a copy of the flags for Python is in the buffers.
  void SetPhase(QatPhase phase);

  // Whether a range has been observed, without which nothing is rounded.
  bool observed() const;

  const at::Tensor& scale() const { return scale_; }
  const at::Tensor& zero_point() const { return zero_point_; }
  const at::Tensor& min_val() const { return min_val_; }
  const at::Tensor& max_val() const { return max_val_; }

 protected:
  // Ranges of `channels`, or one range for all when it is 0. Nothing is sized later, so that
  // whoever collects buffers first has them all.
  explicit FakeQuantize(std::int64_t channels);

  bool observes() const { return is_training() && phase_ != QatPhase::kFrozen; }
  bool rounds() const { return (!is_training() || phase_ != QatPhase::kObserve) && observed(); }

  // Registered above: they share their tensors with the buffers.
  at::Tensor fake_quant_enabled_;
  at::Tensor observer_enabled_;
  at::Tensor scale_;       // float32, 1 or one for each channel
  at::Tensor zero_point_;  // int32, likewise
  at::Tensor min_val_;     // infinite until there is one
  at::Tensor max_val_;

 private:
  QatPhase phase_ = QatPhase::kObserve;
};

// Activations: one range for a tensor, as numbers from 0 to 255.
class ActivationFakeQuantize : public FakeQuantize {
 public:
  ActivationFakeQuantize() : FakeQuantize(/*channels=*/0) {}

  // What is not finite is returned as it is, and not observed.
  at::Tensor Apply(const at::Tensor& x);

  // Rounds `x` where Apply() would, and observes nothing: for what has the range of another tensor.
  at::Tensor Round(const at::Tensor& x) const;

  // Takes `least` and `greatest` (of type float32, each one number) for the range, and derives
  // scale and zero point. Does nothing when one is NaN.
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

}  // namespace muster::trainer
