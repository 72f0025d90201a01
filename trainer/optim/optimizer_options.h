// The choice of an optimizer and its settings.
#pragma once

namespace muster::trainer {

enum class OptimizerKind { kSgd, kAdamW };

// Implementations of the same update.
enum class OptimizerPath {
  // The operations of torch.optim in the same order, so the result matches Python bit for bit.
  kReference,
  // The same operations, each on all parameters at once, as with foreach=True in Python: for a GPU
  // some ten launches in a step instead of some ten for each parameter.
  kForeach,
  // The fastest: on the CPU, for float32 and float64, one pass over each parameter instead of one
  // per operation, which is up to twice as fast and rounds differently; on a GPU kForeach. Others
  // use the reference path.
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
