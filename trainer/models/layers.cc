#include "trainer/models/layers.h"

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace muster::trainer {

Network NetworkOf(const torch::nn::Sequential& net) {
  Network network{.module = net.ptr(), .takes_images = true, .draws_random_numbers = false};
  for (const torch::nn::AnyModule& layer : *net) {
    network.stages.push_back(
        {std::to_string(network.stages.size()),
         [layer = layer](const at::Tensor& inputs) mutable { return layer.forward(inputs); }});
  }
  return network;
}

}  // namespace muster::trainer
