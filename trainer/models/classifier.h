// The networks that muster-train can train.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/core/named_tensor.h"

namespace torch::nn {
class SequentialImpl;
}

namespace muster::trainer {

enum class ModelKind {
  kCnn,  // two 3 x 3 convolutions (16 and 32 channels), each halved by max-pooling, then 128 hidden
         // units
  kMlp,  // two hidden layers of 256 units
};

// A network that tells the ten classes of 28 x 28 grey images apart. Its parameters have the names,
// and from LibTorch's generator the initial values, of the same torch.nn.Sequential in Python. One
// owner, one thread.
class Classifier {
 public:
  // Makes the network with parameters drawn after seeding LibTorch's generator with `seed`.
  Classifier(ModelKind kind, std::uint64_t seed);

  // Moves the parameters to `device` and makes them `dtype`; to be called before any other holder
  // of them is made.
  void MoveTo(const at::Device& device, at::ScalarType dtype);

  // Scores (logits) of B x 1 x 28 x 28 images: B x 10.
  at::Tensor Forward(const at::Tensor& images);

  // Parameters, and buffers (none so far), in the order and with the names of Python's
  // state_dict().
  std::vector<NamedTensor> Parameters() const;
  std::vector<NamedTensor> Buffers() const;

  // Chooses how layers behave that differ between training and evaluation.
  void SetTraining(bool training);

 private:
  std::shared_ptr<torch::nn::SequentialImpl> net_;
};

}  // namespace muster::trainer
