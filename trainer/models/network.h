// A module and the stages of its computation. Each model makes one, and Model wraps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/models/tensor_layers.h"

namespace torch::nn {
class Module;
}

namespace muster::trainer {

// How batch normalization is computed, replaceable so that it can span several ranks.

// The parts of a batch normalization layer. The tensors are the layer's own: in training, a
// BatchNormFunction updates the running statistics, which need no gradient, in place.
struct BatchNormParts {
  at::Tensor weight;               // C, a parameter
  at::Tensor bias;                 // C, a parameter
  at::Tensor running_mean;         // C
  at::Tensor running_var;          // C
  at::Tensor num_batches_tracked;  // int64 scalar
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool training = true;
};

// Normalizes `input`, N x C x H x W, and returns a tensor of the same shape. Called on the thread
// that calls Model::Forward, layer by layer, in the same order on every rank. May throw what
// LibTorch throws.
using BatchNormFunction =
    std::function<at::Tensor(const at::Tensor& input, const BatchNormParts& parts)>;

// A layer or a block of layers that can be computed separately, after the stage before it.
struct Stage {
  std::string name;  // the common prefix of its parameters' names, if it has any: "transformer.h.3"
  // Keeps the modules it needs alive.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // The modules whose parameters and buffers it uses, by their names in Network::module; empty: the
  // one called `name`. Ranks with only some of the stages keep only these.
  std::vector<std::string> uses = {};
};

// Consecutive stages, by index: from `begin`, before `end`.
struct StageRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  friend bool operator==(const StageRange&, const StageRange&) = default;
};

struct Network {
  // Holds parameters and buffers under Python's names, created in Python's order.
  std::shared_ptr<torch::nn::Module> module;
  // One after another they map inputs to outputs; at least one.
  std::vector<Stage> stages;
  // The function that all batch normalization layers call; null when there are none.
  std::shared_ptr<BatchNormFunction> batch_norm;
  // The current batch's other tensors (Batch::others), on the network's device, for stages that use
  // them; null if none do. Empty while a model is only measured, with artificial inputs.
  std::shared_ptr<std::vector<at::Tensor>> others = nullptr;
  // Whether the inputs are images, N x C x H x W, whose layout --channels-last changes.
  bool takes_images = false;
  // Whether the stages may draw random numbers in training, as dropout does.
  bool draws_random_numbers = true;

  // Tensor parallelism: how the layers are split over ranks. Makes the stages compute with this
  // rank's parts of the parameters in `splits`, and exchange the rest over `links`; null if they
  // cannot be split.
  std::function<void(std::shared_ptr<TensorLinks> links)> use_links = nullptr;
  // The number that the number of ranks must divide, and its name: 4 "attention heads".
  int tensor_divides = 1;
  const char* tensor_divides_what = "";
  // How parameters are split, by their names in `module`; all others stay whole.
  std::map<std::string, TensorSplit> splits = {};
  // Whether the stages support links that split the sequence. Each rank's whole parameters then see
  // only a part of it, so their gradients must be summed over the ranks.
  bool splits_sequence = false;
  // With links, the last dimension of the outputs is this rank's part of this many scores, padded
  // at the end with -infinity to equal parts; 0 if outputs stay whole.
  std::int64_t split_scores = 0;
};

// Lets a network describe its layers to code that computes them in another way.

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
