// What the layers of a split model exchange.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// The ranks over which a model's layers are split, seen by one of them. A layer that has a part of
// the outputs takes Copy() of its inputs; one that has a part of the inputs gives Reduce() of its
// outputs. Shoeybi et al., "Megatron-LM", 2019, call the two f and g:
//
//   y = Reduce(ColumnsOfB * gelu(RowsOfA * Copy(x)))
//
// Outside of these two, x and y are the same on all ranks; or, with splits_sequence(), each rank
// has a part of the sequence there, dimension 1 of B x T x anything, and the two gather and scatter
// it: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
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
  virtual bool splits_sequence() const = 0;
  // Whether an exchange goes on while the rank computes.
  virtual bool runs_aside() const = 0;

  // `x`, which is the same on all ranks, or, where they split the sequence, all of it from their
  // parts. Its gradient is the sum of all ranks', of which each then gets its part.
  at::Tensor Copy(const at::Tensor& x);
  // The sum of all ranks' `x`, of which each, where they split the sequence, gets its part. Its
  // gradient goes to each `x`. Throws std::invalid_argument with one sentence when the sequence
  // cannot be cut into equal parts.
  at::Tensor Reduce(const at::Tensor& x);
  // All ranks' `x`, one after the other along `dimension`, which may be negative. Everybody must go
  // on with the whole in the same way: of its gradient, each keeps its own part.
  at::Tensor Gather(const at::Tensor& x, std::int64_t dimension);

  // Unseen by autograd. What has been begun: waits for it, and returns what came of it. Each is
  // called once, in the order in which they were begun.
  using Pending = std::function<at::Tensor()>;
  // Begins the first half of Copy() and that of Reduce(); the second half of each is the other's.
  Pending BeginCopy(const at::Tensor& x);
  Pending BeginReduce(const at::Tensor& x);
  // Replace the contiguous `tensor` with the maximum, or the sum, over the ranks.
  virtual void Max(at::Tensor& tensor) = 0;
  virtual void Sum(at::Tensor& tensor) = 0;

 protected:
  // Of contiguous tensors, which stay as they are: all ranks' `x`, ranks x ...; their sum; of the
  // sum of what is ranks x ..., this rank's.
  virtual Pending BeginGather(const at::Tensor& x) = 0;
  virtual Pending BeginSum(const at::Tensor& x) = 0;
  virtual Pending BeginScatter(const at::Tensor& x) = 0;
};

}  // namespace muster::trainer
