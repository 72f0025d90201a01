#include "test/trainer/models/dropping_network.h"

#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

namespace muster::trainer {
namespace {

struct Block : torch::nn::Module {
  Block(std::int64_t width, bool normalizes)
      : in(register_module("in", torch::nn::Linear(width, 4 * width))),
        out(register_module("out", torch::nn::Linear(4 * width, width))) {
    if (normalizes) norm = register_module("norm", torch::nn::BatchNorm1d(width));
  }
  at::Tensor Forward(const at::Tensor& x) {
    const at::Tensor y = out(at::gelu(in(norm.is_empty() ? x : norm(x))));
    return x + at::dropout(y, 0.2, is_training());
  }

  torch::nn::Linear in;
  torch::nn::Linear out;
  torch::nn::BatchNorm1d norm{nullptr};
};

}  // namespace

ModelRecipe DroppingRecipe(int blocks, std::int64_t width) {
  return {
      .name = "dropping",
      .takes = DataShape::Kind::kSamples,
      .make = [=](const DataShape& shape) -> absl::StatusOr<Network> {
        Network network{.module = std::make_shared<torch::nn::Module>()};
        for (int i = 0; i < blocks; ++i) {
          const std::string name = "block" + std::to_string(i);
          const auto block =
              network.module->register_module(name, std::make_shared<Block>(width, i < blocks / 2));
          network.stages.push_back(
              {name, [block](const at::Tensor& x) { return block->Forward(x); }});
        }
        torch::nn::Linear head =
            network.module->register_module("head", torch::nn::Linear(width, shape.classes));
        network.stages.push_back({"head", [head](const at::Tensor& x) mutable { return head(x); }});
        return network;
      }};
}

}  // namespace muster::trainer
