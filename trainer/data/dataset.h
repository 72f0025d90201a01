// The interface of data sets: numbered samples, and batches of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/data/samples/data_options.h"

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
  // A custom data set's other tensors, with a row per sample: a second input, a mask, a weight.
  // Their number is fixed. The network finds them in Network::others, the objective gets them as an
  // argument (Objective::loss_with).
  std::vector<at::Tensor> others = {};
};

// The same tensors with `count` rows from row `begin` on, which share memory with those of `batch`.
inline Batch BatchRows(const Batch& batch, std::int64_t begin, std::int64_t count) {
  Batch rows = {batch.inputs.narrow(0, begin, count), batch.targets.narrow(0, begin, count)};
  for (const at::Tensor& other : batch.others) rows.others.push_back(other.narrow(0, begin, count));
  return rows;
}

// Samples 0 to size() - 1. Immutable, so any number of threads may use it at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual DataShape shape() const = 0;

  // Returns the samples `indices`, each in [0, size()), in that order. With `train`, the samples
  // are augmented according to the data set's options; the result depends only on the options'
  // seed, `epoch` and the sample's index, not on the batch, the rank or the thread. Runs no
  // parallel tensor operations, so it works only on the calling thread. Throws std::out_of_range
  // for an invalid index, std::invalid_argument with one sentence for a sample that turns out to be
  // invalid, and what LibTorch throws when memory runs out.
  virtual Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                       bool train) const = 0;
};

// The samples for training and those for testing.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  // How both are read, for reading other data in the same way. Class names known to the model come
  // first.
  DataFacts facts = {};
};

}  // namespace muster::trainer
