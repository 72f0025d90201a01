// What the layers of a split model exchange.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// The ranks over which a model's layers are split, seen by one of them. A layer that has a part of
// the outputs takes Copy() of its inputs; one that has a part of the inputs gives Reduce() of its
// outputs. Shoeybi et al., "Megatron-LM", 2019, call the two f and g:
//
//   y = Reduce(ColumnsOfB * gelu(RowsOfA * Copy(x)))
//
// All ranks must make the same calls in the same order, in backward passes too, with tensors of the
// same shapes and types. They block, and throw what a group of ranks throws when a peer is lost.
// One thread at a time. An object must outlive the graphs that it is part of.
class TensorLinks {
 public:
  virtual ~TensorLinks() = default;

  // Which part this rank has, from 0, and how many there are.
  virtual int part() const = 0;
  virtual int parts() const = 0;

  // `x`, which is the same on all ranks. Its gradient is the sum of all ranks'.
  virtual at::Tensor Copy(const at::Tensor& x) = 0;
  // The sum of all ranks' `x`. The gradient, which is the same on all ranks, goes to each `x`.
  virtual at::Tensor Reduce(const at::Tensor& x) = 0;
  // All ranks' `x`, one after the other along `dimension`, which may be negative. Everybody must go
  // on with the whole in the same way: of its gradient, each keeps its own part.
  virtual at::Tensor Gather(const at::Tensor& x, std::int64_t dimension) = 0;

  // Replace the contiguous `tensor` with the maximum, or the sum, over the ranks, unseen by
  // autograd.
  virtual void Max(at::Tensor& tensor) = 0;
  virtual void Sum(at::Tensor& tensor) = 0;
};

}  // namespace muster::trainer
