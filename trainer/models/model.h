// A network to train.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/models/network.h"
#include "trainer/models/objective.h"
#include "trainer/models/recipe.h"
#include "trainer/models/tensor_layers.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// The position in a training at which random numbers are drawn.
struct RandomPlace {
  std::uint64_t seed = 0;        // --seed
  std::int64_t step = 0;         // before it
  std::int64_t micro_batch = 0;  // within the step: with --accumulate there are several
  std::int64_t data_rank = 0;    // whose samples they are
};

// A network with its parameters, which have the names and, before training, the values of the same
// module in Python. Not copyable; one owner, one thread. Only MoveTo and SplitOver replace the
// tensors' storage, so after them a reducer and an optimizer may hold them.
class Model {
 public:
  // Use MakeModel.
  Model(Network network, bool channels_last, bool recompute = false);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Moves all tensors to `device`, and converts floating-point ones to `dtype` (counters stay
  // integers). Call this before anything else holds a tensor of this model.
  void MoveTo(const at::Device& device, at::ScalarType dtype);

  // Returns the scores (logits). Image models: B x C x H x W floating-point images to B x classes.
  // Text models: B x T int64 tokens, with T at most the context, to B x T x vocabulary. `inputs`
  // must be on the model's device. The model must outlive the backward pass. Throws what LibTorch
  // throws, and std::invalid_argument with one sentence if a stage returns nothing, or the last one
  // does not return exactly one row per input.
  at::Tensor Forward(const at::Tensor& inputs);
  // The same in training: random numbers of a stage depend only on `place` and the stage, so that a
  // run that resumes, or recomputes a stage, draws the same ones. Also throws std::invalid_argument
  // if the result depends on no parameter that requires a gradient.
  at::Tensor ForwardAt(const RandomPlace& place, const at::Tensor& inputs);

  // Sets the batch's other tensors for stages that use them (Network::others) in the following
  // passes. A stage that is recomputed in the backward pass gets those of its forward pass.
  void SetOthers(std::vector<at::Tensor> others);

  // Whether stages may draw random numbers in training. Forward() does not repeat them in a second
  // pass, so it recomputes nothing then.
  bool draws_random_numbers() const { return network_.draws_random_numbers; }

  // The module with the parameters and buffers.
  const std::shared_ptr<torch::nn::Module>& module() const { return network_.module; }

  // The stages, in order.
  const std::vector<Stage>& stages() const { return network_.stages; }
  // Like ForwardAt() for only the stages of `range`: from the outputs of the stage before `range`
  // (or the model's inputs) to those of its last one. Consecutive ranges that cover all stages give
  // ForwardAt()'s result, bit for bit. Does not check what the result depends on.
  at::Tensor ForwardPart(const RandomPlace& place, const StageRange& range,
                         const at::Tensor& inputs);
  // The parameters used by stages of `range`, in the order of Parameters(). A parameter of two
  // stages, such as tied embeddings, belongs to both.
  std::vector<NamedTensor> ParametersOf(const StageRange& range) const;

  // The parameters and the buffers, in the order and with the names of Python's named_parameters()
  // and named_buffers(): a tensor shared by modules appears once, under its first name.
  std::vector<NamedTensor> Parameters() const;
  std::vector<NamedTensor> Buffers() const;
  // Both, in the order of Python's state_dict(): module by module. A shared tensor appears under
  // all of its names.
  std::vector<NamedTensor> StateDict() const;

  // Switches layers such as batch normalization between training (the default) and evaluation.
  void SetTraining(bool training);

  // From now on, every batch normalization layer calls `function`, in training and evaluation; it
  // should check parts.training. This is how SyncBatchNorm is turned on: parameters, buffers and
  // names stay the same, and only the computation changes. No effect on a model without such
  // layers.
  void SetBatchNorm(BatchNormFunction function);
  // Whether there are such layers, according to the network (Network::batch_norm).
  bool has_batch_norm() const { return network_.batch_norm != nullptr; }

  // Tensor parallelism. The number that the number of ranks must divide, and its name in plain
  // English; 1 if this model cannot be split.
  int tensor_divides() const { return network_.use_links ? network_.tensor_divides : 1; }
  const char* tensor_divides_what() const { return network_.tensor_divides_what; }
  // Whether it supports links that split the sequence.
  bool splits_sequence() const { return network_.splits_sequence; }
  // Keeps only this rank's part of each parameter, cut from the current value, so create models
  // with the same seed on all ranks. From now on forward and backward passes use `links`, and all
  // their ranks must make the same passes on the same inputs; gradients of parameters that stay
  // whole are the same on all, or with links that split the sequence must be summed over the ranks.
  // Call this once, before anything else holds a tensor of this model. With a single part the model
  // is unchanged. kInvalidArgument and one sentence, with nothing changed, if it cannot be split
  // like that.
  absl::Status SplitOver(std::shared_ptr<TensorLinks> links);
  // How the parameter `name` is cut; kWhole unless the model has been split.
  TensorSplit SplitOf(const std::string& name) const;
  // Converts a tensor of the shape of this rank's part of parameter `name`, such as its gradient or
  // an average of that, to the whole and back. All ranks must call Whole(), which exchanges parts,
  // in the same order; Part() is local. Tensors of other names, and all tensors of an unsplit
  // model, are returned unchanged.
  at::Tensor Whole(const std::string& name, const at::Tensor& part) const;
  at::Tensor Part(const std::string& name, const at::Tensor& whole) const;
  // Computes `objective` from Forward()'s result: once split, from a part of the scores.
  Objective ObjectiveOf(const Objective& objective) const;

 private:
  StageRange all_stages() const { return {0, network_.stages.size()}; }
  // Runs stage `index`, with random numbers that depend on the place if there is one.
  at::Tensor RunStage(std::size_t index, const at::Tensor& inputs,
                      const std::optional<RandomPlace>& place) const;
  at::Tensor RunStages(const StageRange& range, const at::Tensor& inputs,
                       const std::optional<RandomPlace>& place);
  std::optional<RandomPlace> WhereItMatters(const RandomPlace& place) const;

  // The state that Recomputed() needs of a stage.
  struct StageState {
    std::vector<at::Tensor> buffers;
    bool has_parameters = false;
  };

  const Network network_;
  const bool channels_last_;
  std::vector<StageState> recomputed_;        // per stage; empty: none is recomputed
  std::vector<at::Tensor> others_;            // of the current batch
  std::shared_ptr<TensorLinks> links_;        // null unless the model is split
  std::map<std::string, std::int64_t> rows_;  // of each whole parameter that was cut
};

// Whether the parameter or buffer `name` belongs to a module that `stage` uses.
bool UsesTensor(const Stage& stage, const std::string& name);

struct ModelOptions {
  std::uint64_t seed = 0;  // of the initial parameters
  // For images: store them and the weights of convolutions with the channels innermost, which is
  // faster on CPUs and GPUs. Same results up to rounding.
  bool channels_last = false;
  // In training, keep only the inputs of each stage's forward pass, and recompute the rest in the
  // backward pass. Same results, bit for bit. The last stage keeps everything, as it is needed
  // again at once. The first stage is recomputed like the others, as its activations can be the
  // largest.
  bool recompute = false;
};

// Creates the recipe's model for data of `shape`, on the CPU in float32. Seeds LibTorch's default
// generator before the parameters are drawn, so they are the same on every rank, and, bit for bit,
// those of the same module created in Python after torch.manual_seed(seed). kInvalidArgument and
// one sentence if the model is for another kind of data, the network is impossible, or it lacks its
// module, its stages or their functions.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelRecipe& recipe, const DataShape& shape,
                                                 const ModelOptions& options = {});

}  // namespace muster::trainer
