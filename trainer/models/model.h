// A network to train, whichever it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/models/batch_norm.h"
#include "trainer/models/model_options.h"
#include "trainer/models/network.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

// A network with its parameters, which have the names, and before any training the values, of the
// same module in Python. Not copied; one owner, one thread. Its tensors keep their identity for the
// model's life but in MoveTo, so that a reducer and an optimizer may hold them.
class Model {
 public:
  // Use MakeModel.
  Model(Network network, bool channels_last);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Moves everything to `device` and makes what is floating-point `dtype` (counters stay integers).
  // To be called before anybody else holds a tensor of this model.
  void MoveTo(const at::Device& device, at::ScalarType dtype);

  // Scores (logits). Image models: B x C x H x W floating-point images to B x classes. Text models:
  // B x T int64 tokens, T at most the context, to B x T x vocabulary. `inputs` are on the model's
  // device. Throws what LibTorch throws.
  at::Tensor Forward(const at::Tensor& inputs);

  // Parameters, and buffers, in the order and with the names of Python's named_parameters() and
  // named_buffers().
  std::vector<NamedTensor> Parameters() const;
  std::vector<NamedTensor> Buffers() const;
  // Both together in the order of Python's state_dict(): module by module.
  std::vector<NamedTensor> StateDict() const;

  // Chooses how layers behave that differ between training and evaluation; training at first.
  void SetTraining(bool training);

  // From now on every batch normalization layer computes by `function`. This is how a model becomes
  // one with SyncBatchNorm: parameters, buffers and names stay, only the computing changes, and
  // only in training if `function` asks parts.training. Nothing happens to a model without such
  // layers.
  void SetBatchNorm(BatchNormFunction function);

 private:
  const Network network_;
  const bool channels_last_;
};

// Makes the model, on the CPU in float32, with parameters drawn after seeding LibTorch's default
// generator with options.seed: the same on every rank. kInvalidArgument as CheckModelOptions.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelOptions& options);

}  // namespace muster::trainer
