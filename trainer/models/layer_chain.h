// Lets a network describe its layers to code that computes them in another way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace muster::trainer {

// A layer or a block of layers, and its name in the module that holds it: "conv1", "layer1.0".
// Layers without parameters and buffers, such as a ReLU, need no name.
struct NamedLayer {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
};

// A module that computes one layer after another, as torch::nn::Sequential does.
class LayerChain {
 public:
  virtual ~LayerChain() = default;

  // In order of computation. A layer may itself be a chain or a ResidualBlock.
  virtual std::vector<NamedLayer> layers() const = 0;
};

// A module that adds two results of its inputs, and returns the ReLU of their sum.
class ResidualBlock {
 public:
  virtual ~ResidualBlock() = default;

  // The layers of the first summand, in order; at least one.
  virtual std::vector<NamedLayer> body() const = 0;
  // The layers of the second one; empty: the inputs themselves.
  virtual std::vector<NamedLayer> shortcut() const = 0;
};

}  // namespace muster::trainer
