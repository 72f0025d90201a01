// The interface of data sets: numbered samples, and batches of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/data/data_facts.h"
#include "trainer/data/data_shape.h"

namespace muster::trainer {

// A batch of samples; a data set gives both tensors on the CPU.
//   images: inputs float32 B x C x H x W, normalized; targets int64 B, the classes
//   tables: inputs float32 B x 1 x 1 x columns, standardized; targets int64 B, the classes
//   text:   inputs int64 B x T; targets int64 B x T, the token that follows each input
// Where DataOptions say that labels are not needed, a target is -1 if there is none, and
// shape().classes or more for a class that the model does not know.
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
};

// Samples 0 to size() - 1. Immutable, so any number of threads may use it at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual DataShape shape() const = 0;

  // Returns the samples `indices`, each in [0, size()), in that order. With `train`, the samples
  // are augmented as the data set's options say; the result depends only on the options' seed,
  // `epoch` and the sample's index, not on the batch, the rank or the thread. Runs no parallel
  // tensor operations, so it works on the calling thread alone. Throws std::out_of_range for an
  // invalid index, std::invalid_argument with one sentence for a sample that turns out to be
  // invalid, and what LibTorch throws when memory runs out.
  virtual Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                       bool train) const = 0;
};

// The samples for training and those for testing.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  // How both are read, so that other data can be read in the same way. Of the names of classes,
  // those that the model knows come first.
  DataFacts facts = {};
};

}  // namespace muster::trainer
