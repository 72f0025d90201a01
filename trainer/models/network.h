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

#include "trainer/models/batch_norm.h"
#include "trainer/models/tensor_links.h"
#include "trainer/models/tensor_split.h"

namespace torch::nn {
class Module;
}

namespace muster::trainer {

// A layer or a block of layers: what can be computed by itself when the stage before it is done.
struct Stage {
  std::string name;  // as that of its parameters begins, if it has any: "transformer.h.3"
  // Keeps the parts of the module that it needs alive.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // The modules whose parameters and buffers it uses, by their names in Network::module; empty:
  // the one called `name`. Ranks that have some stages only keep what these name.
  std::vector<std::string> uses = {};
};

// Some stages that follow one another, by their indices: from `begin`, before `end`.
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
  // Whether the inputs are images, N x C x H x W, which --channels-last lays out anew.
  bool takes_images = false;
  // Whether the stages may draw random numbers in training, as dropout does.
  bool draws_random_numbers = true;

  // Tensor parallelism: how the layers can be split over ranks. Makes the stages compute with this
  // rank's parts of the parameters in `splits`, and exchange the rest over `links`; null when they
  // cannot be split.
  std::function<void(std::shared_ptr<TensorLinks> links)> use_links = nullptr;
  // What the number of ranks must divide, and what that is: 4 "attention heads".
  int tensor_divides = 1;
  const char* tensor_divides_what = "";
  // How parameters are cut, by their names in `module`; all others stay whole.
  std::map<std::string, TensorSplit> splits = {};
  // Whether the stages can work with links that split the sequence. All parameters that stay whole
  // then see a part of it each, so that their gradients are to be added up over the ranks.
  bool splits_sequence = false;
  // With links, the last dimension of the outputs is this rank's part of so many scores, padded at
  // the end with -infinity to equal parts; 0 if outputs are whole all the same.
  std::int64_t split_scores = 0;
};

}  // namespace muster::trainer
