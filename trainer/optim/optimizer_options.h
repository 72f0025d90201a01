// The choice of an optimizer and its settings.
#pragma once

namespace muster::trainer {

enum class OptimizerKind { kSgd, kAdamW };

// Two implementations of the same update.
enum class OptimizerPath {
  // The operations of torch.optim in the same order, so the result matches Python bit for bit.
  kReference,
  // One pass over each parameter instead of one per operation: up to twice as fast, with different
  // rounding. Works for float32 and float64 on the CPU; other parameters use the reference path.
  kOnePass,
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  OptimizerPath path = OptimizerPath::kOnePass;

  // SGD adds weight_decay * parameter to the gradient; AdamW shrinks the parameter separately.
  // Python's defaults are 0 for SGD and 0.01 for AdamW.
  double weight_decay = 0;
  // Whether parameters with fewer than two dimensions (biases and the weights of normalization
  // layers) decay too. If not, they form a second group without weight decay.
  bool decay_vectors = true;

  // For SGD.
  double momentum = 0.9;
  bool nesterov = false;  // requires momentum

  // Of AdamW.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // For AdamW's reference path, because versions of torch round differently: whether the mean of
  // the gradients is computed with lerp_ instead of mul_ and add_, and whether the square root of
  // the second bias correction is computed as a power of 0.5 instead of with sqrt. For parity with
  // Python, take both from trainer/compat/torch_version.h.
  bool interpolate_mean = false;
  bool root_is_power = false;
};

}  // namespace muster::trainer
