// A module tree and the way through it: what each model file makes, and Model wraps.
#pragma once

#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

#include "trainer/models/batch_norm.h"

namespace torch::nn {
class Module;
}

namespace muster::trainer {

struct Network {
  // Holds parameters and buffers under Python's names, made in Python's order.
  std::shared_ptr<torch::nn::Module> module;
  // Inputs to outputs. Keeps what it needs of `module` alive.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // What the network's batch normalization layers call, each time they run; null when it has none.
  std::shared_ptr<BatchNormFunction> batch_norm;
  // Whether `inputs` are images, N x C x H x W.
  bool takes_images = true;
};

}  // namespace muster::trainer
