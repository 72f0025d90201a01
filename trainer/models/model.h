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

#include "trainer/models/batch_norm.h"
#include "trainer/models/model_recipe.h"
#include "trainer/models/network.h"
#include "trainer/models/objective.h"
#include "trainer/models/tensor_links.h"
#include "trainer/models/tensor_split.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

// Where a training draws random numbers.
struct RandomPlace {
  std::uint64_t seed = 0;        // --seed
  std::int64_t step = 0;         // before it
  std::int64_t micro_batch = 0;  // of the step: with --accumulate there are several
  std::int64_t data_rank = 0;    // whose samples they are
};

// A network with its parameters. These have the names and, before training, the values of the same
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
  // throws, and std::invalid_argument with one sentence when a stage returns nothing, or the last
  // one other than a row for each input.
  at::Tensor Forward(const at::Tensor& inputs);
  // The same in training: random numbers that a stage draws depend on `place` and the stage, and on
  // nothing else, so that a run that resumes, or computes a stage again, draws the same ones.
  // Throws std::invalid_argument, too, when the result depends on no parameter that requires a
  // gradient.
  at::Tensor ForwardAt(const RandomPlace& place, const at::Tensor& inputs);

  // Whether stages may draw random numbers in training. Those of Forward() are not the same in a
  // second pass, so it recomputes nothing then.
  bool draws_random_numbers() const { return network_.draws_random_numbers; }

  // What holds the parameters and buffers.
  const std::shared_ptr<torch::nn::Module>& module() const { return network_.module; }

  // The stages, in their order.
  const std::vector<Stage>& stages() const { return network_.stages; }
  // The same as ForwardAt() for the stages of `range` alone: from the outputs of the stage before
  // `range` (the model's inputs, when there is none) to those of its last one. One after another,
  // ranges that cover all stages give ForwardAt()'s result, bit for bit. Does not check what the
  // result depends on.
  at::Tensor ForwardPart(const RandomPlace& place, const StageRange& range,
                         const at::Tensor& inputs);
  // The parameters that stages of `range` use, as Parameters() has them and in its order. A
  // parameter that two stages use, such as tied embeddings, is in both.
  std::vector<NamedTensor> ParametersOf(const StageRange& range) const;

  // The parameters and the buffers, in the order and with the names of Python's named_parameters()
  // and named_buffers(): a tensor that modules share is there once, under its first name.
  std::vector<NamedTensor> Parameters() const;
  std::vector<NamedTensor> Buffers() const;
  // Both, in the order of Python's state_dict(): module by module. A shared tensor has all of its
  // names there.
  std::vector<NamedTensor> StateDict() const;

  // Switches layers such as batch normalization between training (the default) and evaluation.
  void SetTraining(bool training);

  // From now on, every batch normalization layer calls `function`, in training and evaluation; it
  // should check parts.training. This is how SyncBatchNorm is turned on: parameters, buffers and
  // names stay the same, and only the computation changes. No effect on a model without such
  // layers.
  void SetBatchNorm(BatchNormFunction function);

  // Tensor parallelism. What the number of ranks must divide, and what that is, in plain English;
  // 1 when this model cannot be split.
  int tensor_divides() const { return network_.use_links ? network_.tensor_divides : 1; }
  const char* tensor_divides_what() const { return network_.tensor_divides_what; }
  // Whether it can work with links that split the sequence.
  bool splits_sequence() const { return network_.splits_sequence; }
  // Leaves this rank its part of each parameter, cut from what it is now, so make models with the
  // same seed on all ranks. From now on forward and backward passes use `links`, and every rank of
  // it must make the same ones, on the same inputs; gradients of parameters that stay whole are the
  // same on all, or with links that split the sequence are to be added up over the ranks. Call this
  // once, before anything else holds a tensor of this model. One part leaves the model as it is.
  // kInvalidArgument and one sentence, with nothing changed, when it cannot be split like that.
  absl::Status SplitOver(std::shared_ptr<TensorLinks> links);
  // How the parameter `name` is cut; kWhole unless the model has been split.
  TensorSplit SplitOf(const std::string& name) const;
  // From what has the shape of this rank's part of parameter `name`, such as its gradient or an
  // average of that, to the whole and back. All ranks must call Whole(), which exchanges parts, in
  // the same order; Part() needs nobody. Tensors of other names, and all if the model has not been
  // split, are returned as they are.
  at::Tensor Whole(const std::string& name, const at::Tensor& part) const;
  at::Tensor Part(const std::string& name, const at::Tensor& whole) const;
  // What computes `objective` from what Forward() returns: once split, from a part of the scores.
  Objective ObjectiveOf(const Objective& objective) const;

 private:
  StageRange all_stages() const { return {0, network_.stages.size()}; }
  // Runs stage number `index`, with random numbers that depend on the place if there is one.
  at::Tensor RunStage(std::size_t index, const at::Tensor& inputs,
                      const std::optional<RandomPlace>& place) const;
  at::Tensor RunStages(const StageRange& range, const at::Tensor& inputs,
                       const std::optional<RandomPlace>& place);
  std::optional<RandomPlace> WhereItMatters(const RandomPlace& place) const;

  // What Recomputed() has to know of a stage.
  struct StageState {
    std::vector<at::Tensor> buffers;
    bool has_parameters = false;
  };

  const Network network_;
  const bool channels_last_;
  std::vector<StageState> recomputed_;        // for each stage; empty: none is computed again
  std::shared_ptr<TensorLinks> links_;        // null unless it has been split
  std::map<std::string, std::int64_t> rows_;  // of each whole parameter that has been cut
};

// Whether the parameter or buffer called `name` belongs to a module that `stage` uses.
bool UsesTensor(const Stage& stage, const std::string& name);

struct ModelOptions {
  std::uint64_t seed = 0;  // of the initial parameters
  // For images: store them and the weights of convolutions with the channels innermost, which is
  // faster on CPUs and GPUs. Same results up to rounding.
  bool channels_last = false;
  // In training, keep of each stage's forward pass its inputs alone, and compute the rest again
  // when its turn comes in the backward pass. Same results, bit for bit. Of the last stage all is
  // kept: it would be needed again at once. A first stage's activations can be as large as any, so
  // they are not.
  bool recompute = false;
};

// Creates the recipe's model for data of `shape`, on the CPU in float32. Seeds LibTorch's default
// generator before the parameters are drawn, so they are the same on every rank, and, bit for bit,
// those of the same module created in Python after torch.manual_seed(seed). kInvalidArgument and
// one sentence when the model is for another kind of data, when there can be no such network, or
// when it lacks its module, its stages or their functions.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelRecipe& recipe, const DataShape& shape,
                                                 const ModelOptions& options = {});

}  // namespace muster::trainer
