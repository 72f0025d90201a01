#include "trainer/models/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace muster::trainer {

Network MakeMlp(const ModelOptions& options) {
  namespace nn = torch::nn;
  // One by one, for the order in which they draw their initial values.
  nn::Sequential net;
  net->push_back(nn::Flatten());
  std::int64_t in = options.channels * options.height * options.width;
  for (const std::int64_t width : options.hidden) {
    net->push_back(nn::Linear(in, width));
    net->push_back(nn::ReLU());
    in = width;
  }
  net->push_back(nn::Linear(in, options.classes));
  return {.module = net.ptr(),
          .forward = [net](const at::Tensor& images) mutable { return net->forward(images); }};
}

}  // namespace muster::trainer
