// Copies of a value's tensors.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/io/value.h"

namespace muster::trainer {

// Keeps its memory from one copy to the next: checkpoints of a training are alike, and memory that
// the kernel has to clear first takes several times as long to fill. One thread at a time.
class TensorCopies {
 public:
  // Returns `value` with a copy of each tensor, dense and on the CPU; one that occurs several times
  // is copied once. The copies are good until the next call. kInvalidArgument when the tree is
  // deeper than 100. Throws c10::Error when there is no memory.
  absl::StatusOr<Value> Copy(const Value& value);

 private:
  std::vector<at::Tensor> buffers_;  // in the order of the tree
};

}  // namespace muster::trainer
