// What a custom program trains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/models/network.h"
#include "trainer/models/objective.h"

namespace muster::trainer {

// Declares the flags of a recipe's model.

// Adds flags to a command line. Each flag writes to `value` when the command line is parsed, so
// `value` must outlive that; its prior content is the default in --help. `flag` begins with two
// dashes, except for Switch, and must not exist in the program already; otherwise the program exits
// with one sentence. An invalid value ends the program with one sentence before any rank has
// joined. Each value becomes part of the checkpoint, and a run cannot resume with another one.
class FlagSet {
 public:
  virtual ~FlagSet() = default;

  // A number from `low` to `high`, both included.
  virtual void Number(const std::string& flag, std::int64_t& value, std::int64_t low,
                      std::int64_t high, const std::string& description) = 0;
  virtual void Number(const std::string& flag, double& value, double low, double high,
                      const std::string& description) = 0;
  // Any text.
  virtual void Text(const std::string& flag, std::string& value,
                    const std::string& description) = 0;
  // --flag and --no-flag; `flag` is given without dashes.
  virtual void Switch(const std::string& flag, bool& value, const std::string& description) = 0;
  // One of `words`, one of which is the default in `value`.
  virtual void Choice(const std::string& flag, std::string& value,
                      const std::vector<std::string>& words, const std::string& description) = 0;
};

// A recipe's own rules for updating parameters.

// The settings of a parameter that differ from the usual ones. Parameters with the same settings
// form a group, as in Python's param_groups.
struct ParameterSettings {
  double lr_scale = 1;                 // factor for the step's learning rate
  std::optional<double> weight_decay;  // instead of --weight-decay
  friend bool operator==(const ParameterSettings&, const ParameterSettings&) = default;
};

// One step for one parameter.
struct UpdateStep {
  double lr = 0;            // of this step and this parameter
  double weight_decay = 0;  // of this parameter
  std::int64_t number = 1;  // this parameter's steps so far, including this one
};

// A custom optimizer, instead of --algorithm.
struct UpdateRule {
  std::string name;  // "lion": in messages
  // The tensors kept for each parameter between steps, by name: "exp_avg". Checkpoints contain them
  // as Python's state_dict does.
  std::vector<std::string> kept = {};
  double lr = 0.01;  // the default of --lr
  // Changes `parameter` in place. `gradient` and each tensor of `kept`, in its order, have the
  // parameter's shape, type and device; those of `kept` start as zeros, and are changed in place as
  // well. Called without gradients, for one parameter after another. With --zero and --mesh a rank
  // has a slice of a parameter, of the same number of dimensions or flat: so the rule should work
  // element by element. An exception ends the training.
  std::function<void(const at::Tensor& parameter, const at::Tensor& gradient,
                     const std::vector<at::Tensor>& kept, const UpdateStep& step)>
      update;
};

struct OwnUpdates {
  // The settings of a parameter, by its first name in the state dict; the same on every rank. Null:
  // none has special settings.
  std::function<ParameterSettings(const std::string& parameter)> settings_of = nullptr;
  std::optional<UpdateRule> rule = std::nullopt;
  // Instead of --schedule: the factor for --lr in step `step`, counted from 0, of `steps`. During
  // --warmup-steps the rate still rises to --lr. Must depend only on its arguments, so that a run
  // that resumes continues with it. Null: --schedule.
  std::function<double(std::int64_t step, std::int64_t steps)> schedule = nullptr;
};

// A model, its data and its objective; muster-train provides the rest (ranks, checkpoints,
// optimizers, schedules, reports). ModelRecipe and DataRecipe specify what each function has to do.
struct Recipe {
  std::string name = "model";  // in reports and checkpoints
  // The kind of samples. kImages and kText have more flags: augmentation, tokenizers.
  DataShape::Kind kind = DataShape::Kind::kSamples;
  // Opens the data: options.paths are those of --data, options.test_paths those of --test-data.
  std::function<absl::StatusOr<Splits>(const DataOptions& options)> data;
  // Creates the network for data of this shape, with its initial parameters.
  std::function<absl::StatusOr<Network>(const DataShape& shape)> model;
  // The loss, as a sum over the samples and not their mean; by default the cross entropy of
  // classes, in nats.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> loss =
      Objective().loss;
  // By default the share of correct classes. Names must be unique, and not built-in entries of
  // reports, such as "loss" or "step".
  std::vector<Metric> metrics = Objective().metrics;
  // Instead of `loss`, for one that needs the batch's other tensors (Batch::others).
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets,
                           const std::vector<at::Tensor>& others)>
      loss_with = nullptr;
  // Adds the model's flags; null: it has none.
  std::function<void(FlagSet& flags)> flags = nullptr;
  // Groups of parameters, an optimizer and a schedule, if the flags do not suffice.
  OwnUpdates updates = {};
};

// A kind of model, as an entry of the registry.

// A flag and its value, in command-line form: {"--width", "128"}.
using ModelFlag = std::pair<std::string, std::string>;

// The shape of each tensor of a state dict, by its name without the "module." of Python's
// DistributedDataParallel.
using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;

// A recipe's functions share the variables of its flags; so do copies of the recipe.
struct ModelRecipe {
  std::string name;  // of --model: "gpt"
  DataShape::Kind takes = DataShape::Kind::kImages;
  // For a model of images: whether it also takes table rows, as images of one line.
  bool takes_tables = false;
  // Whether --qat can quantize its network; the module must be a torch::nn::Sequential or a
  // LayerChain then: see PrepareQat() for the layers.
  bool can_be_quantized = false;
  // Adds the flags that, together with the data's shape, determine the parameters: two models with
  // the same flags, fitted to the same data, can load each other's. Null: there are none.
  std::function<void(FlagSet& flags)> add_flags;
  // Creates the network on the CPU in float32, and draws its initial parameters from LibTorch's
  // default generator. `shape` is of a kind that the model takes. kInvalidArgument and one sentence
  // if the network is impossible.
  std::function<absl::StatusOr<Network>(const DataShape& shape)> make;
  Objective objective = {};
  OwnUpdates updates = {};
  // Returns the flags, and for text --context and --vocabulary, of a model with these tensors, or
  // nullopt if they belong to another kind of model. A flag that tensors do not show has an empty
  // value. Null: tensors show nothing.
  std::function<std::optional<std::vector<ModelFlag>>(const TensorShapes& shapes)> recognize;
};

// The shape of `name` if it exists and has `dimensions`; else null.
inline const std::vector<std::int64_t>* FindShape(const TensorShapes& shapes,
                                                  const std::string& name, std::size_t dimensions) {
  const auto found = shapes.find(name);
  return found != shapes.end() && found->second.size() == dimensions ? &found->second : nullptr;
}

// kInvalidArgument unless all sizes of images and the number of classes are at least 1.
inline absl::Status CheckImageShape(const DataShape& shape) {
  for (const std::int64_t size : {shape.channels, shape.height, shape.width, shape.classes}) {
    if (size >= 1) continue;
    return absl::InvalidArgumentError("images and classes must have a size of at least 1");
  }
  return absl::OkStatus();
}

}  // namespace muster::trainer
