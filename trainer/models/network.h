// A module and its forward function. Each model file creates one, and Model wraps it.
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
  // Holds parameters and buffers under Python's names, created in Python's order.
  std::shared_ptr<torch::nn::Module> module;
  // Maps inputs to outputs. Keeps the parts of `module` that it needs alive.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // The function that all batch normalization layers call; null when there are none.
  std::shared_ptr<BatchNormFunction> batch_norm;
  // Whether the inputs are images, N x C x H x W, which --channels-last lays out anew.
  bool takes_images = false;
};

}  // namespace muster::trainer
