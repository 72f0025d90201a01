// A kind of model, as an entry of the registry.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/data_shape.h"
#include "trainer/flag_set.h"
#include "trainer/models/network.h"
#include "trainer/models/objective.h"

namespace muster::trainer {

// A flag and its value, as a user would give them: {"--width", "128"}.
using ModelFlag = std::pair<std::string, std::string>;

// The shape of each tensor of a state dict, by its name without the "module." of Python's
// DistributedDataParallel.
using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;

// A recipe's functions share what its flags are parsed into; a copy of the recipe shares it, too.
struct ModelRecipe {
  std::string name;  // of --model: "gpt"
  DataShape::Kind takes = DataShape::Kind::kImages;
  // Of a model of images: whether it takes rows of a table as well, as images of one line.
  bool takes_tables = false;
  // Whether --qat can quantize its network, whose module must be a torch::nn::Sequential or a
  // LayerChain for that: PrepareQat() says of which layers.
  bool can_be_quantized = false;
  // Adds the flags that, together with the data's shape, determine the parameters: two models with
  // the same flags, fitted to the same data, can load each other's. Null: there are none.
  std::function<void(FlagSet& flags)> add_flags;
  // Makes the network on the CPU in float32, and draws its initial parameters from LibTorch's
  // default generator. `shape` is of the kind that the model takes. kInvalidArgument and one
  // sentence when there can be no such network.
  std::function<absl::StatusOr<Network>(const DataShape& shape)> make;
  Objective objective = {};
  // Returns the flags, and for text --context and --vocabulary, that a model with these tensors was
  // made with, or nullopt if they are of another kind of model. A flag that tensors do not tell has
  // an empty value. Null: its tensors tell nothing.
  std::function<std::optional<std::vector<ModelFlag>>(const TensorShapes& shapes)> recognize;
};

// The shape of `name` if it is there and has `dimensions`; else null.
const std::vector<std::int64_t>* FindShape(const TensorShapes& shapes, const std::string& name,
                                           std::size_t dimensions);

// kInvalidArgument unless all sizes of images and the number of classes are at least 1.
absl::Status CheckImageShape(const DataShape& shape);

}  // namespace muster::trainer
