// Numbered samples, and batches of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/data/data_shape.h"

namespace muster::trainer {

// Samples put together; both tensors are on the CPU.
//   images: inputs float32 B x C x H x W, normalized; targets int64 B, the classes
//   text:   inputs int64 B x T; targets int64 B x T, the token that follows each of inputs
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
};

// Samples 0 to size() - 1. Nothing in it changes after it was made, so any number of threads may
// use it at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual DataShape shape() const = 0;

  // The samples `indices`, each in [0, size()), in that order. With `train`, samples are varied as
  // the data set's options say; how depends on the options' seed, `epoch` and the sample's number
  // alone, not on the batch, the rank or the thread. No parallel tensor operation runs in it, so a
  // thread of its own is all a caller needs. Throws std::out_of_range for an index that is not one,
  // and what LibTorch throws when memory runs out.
  virtual Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                       bool train) const = 0;
};

// What a model learns from and what it is measured on.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

}  // namespace muster::trainer
