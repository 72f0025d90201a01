// Which optimizer to make.
#pragma once

namespace muster::trainer {

enum class OptimizerKind { kSgd, kAdamW };

// Two ways to compute the same thing.
enum class OptimizerPath {
  // torch.optim's operations in torch.optim's order: what Python computes, bit for bit.
  kReference,
  // One pass over each parameter instead of one for each operation, which is up to twice as fast;
  // differs from the reference in rounding. For float32 and float64 on the CPU; others take the
  // reference path.
  kOnePass,
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  OptimizerPath path = OptimizerPath::kOnePass;

  // How much of each parameter is taken away with a step: added to the gradient by SGD, apart from
  // it by AdamW (Python's defaults: 0 and 0.01).
  double weight_decay = 0;
  // Whether biases and the weights of normalization layers, that is parameters of one dimension,
  // decay too. If not they are a second group, after the first and without weight decay.
  bool decay_vectors = true;

  // Of SGD.
  double momentum = 0.9;
  bool nesterov = false;  // needs a momentum

  // Of AdamW.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // Of AdamW's reference path, where torch's versions round differently: whether the mean of
  // gradients is computed by lerp_ rather than mul_ and add_, and whether the root of a step's
  // second correction is its power of 0.5 rather than its sqrt. For parity set both to what compat
  // says of this LibTorch.
  bool interpolate_mean = false;
  bool root_is_power = false;
};

}  // namespace muster::trainer
