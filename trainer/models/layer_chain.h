// What a network says of its layers to those who compute with them in another way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace muster::trainer {

// A layer or a block of layers, and its name in the module that holds it: "conv1", "layer1.0". What
// has no parameters and no buffers, such as a ReLU, needs no name.
struct NamedLayer {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
};

// A module that computes one layer after another, as torch::nn::Sequential does.
class LayerChain {
 public:
  virtual ~LayerChain() = default;

  // In the order of the computation. A layer may be a chain or a ResidualBlock itself.
  virtual std::vector<NamedLayer> layers() const = 0;
};

// A module that adds two results of its inputs, and returns the ReLU of their sum.
class ResidualBlock {
 public:
  virtual ~ResidualBlock() = default;

  // What is computed one after another for the first summand; at least one layer.
  virtual std::vector<NamedLayer> body() const = 0;
  // The same for the second one; empty: it is the inputs themselves.
  virtual std::vector<NamedLayer> shortcut() const = 0;
};

}  // namespace muster::trainer
