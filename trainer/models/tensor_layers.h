// Layers that are split over ranks. Without links they are the ordinary layers, bit for bit. If the
// links split the sequence (see TensorLinks), read "the same on all ranks" as each rank's part of
// the sequence: B x T / ranks x ..., while everything else has all of T.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// What the layers of a split model exchange.

// The ranks over which a model's layers are split, from the point of view of one of them. A layer
// with a part of the outputs applies Copy() to its inputs; one with a part of the inputs applies
// Reduce() to its outputs. Shoeybi et al., "Megatron-LM", 2019, call the two f and g:
//
//   y = Reduce(ColumnsOfB * gelu(RowsOfA * Copy(x)))
//
// Outside of these two, x and y are the same on all ranks; or, with splits_sequence(), each rank
// has a part of the sequence there, dimension 1 of B x T x anything, and the two gather and scatter
// it: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
//
// All ranks must make the same calls in the same order, in backward passes too, with tensors of the
// same shapes and types. They block, and throw what a group of ranks throws if a peer is lost. One
// thread at a time. An object must outlive the graphs that contain it.
class TensorLinks {
 public:
  virtual ~TensorLinks() = default;

  // This rank's part, counted from 0, and the number of parts.
  virtual int part() const = 0;
  virtual int parts() const = 0;
  virtual bool splits_sequence() const = 0;
  // Whether an exchange proceeds while the rank computes.
  virtual bool runs_aside() const = 0;

  // `x`, which is the same on all ranks, or, if they split the sequence, the concatenation of their
  // parts. Its gradient is the sum over all ranks, or each rank's part of that.
  at::Tensor Copy(const at::Tensor& x);
  // The sum of all ranks' `x`, or, if they split the sequence, this rank's part of it. Its gradient
  // goes to each `x`. Throws std::invalid_argument with one sentence if the sequence cannot be cut
  // into equal parts.
  at::Tensor Reduce(const at::Tensor& x);
  // All ranks' `x`, concatenated along `dimension`, which may be negative. All ranks must use the
  // result in the same way: each keeps its own part of the gradient.
  at::Tensor Gather(const at::Tensor& x, std::int64_t dimension);

  // Not seen by autograd. An exchange in progress: waits for it, and returns the result. Each must
  // be called once, in the order in which they were begun.
  using Pending = std::function<at::Tensor()>;
  // Begins the first half of Copy() or Reduce(); the second half of each is the other's.
  Pending BeginCopy(const at::Tensor& x);
  Pending BeginReduce(const at::Tensor& x);
  // Replace the contiguous `tensor` with the maximum, or the sum, over the ranks.
  virtual void Max(at::Tensor& tensor) = 0;
  virtual void Sum(at::Tensor& tensor) = 0;

 protected:
  // For contiguous tensors, which are not changed: all ranks' `x`, ranks x ...; their sum; this
  // rank's part of the sum of tensors of ranks x ... .
  virtual Pending BeginGather(const at::Tensor& x) = 0;
  virtual Pending BeginSum(const at::Tensor& x) = 0;
  virtual Pending BeginScatter(const at::Tensor& x) = 0;
};

// A linear layer with outputs split over ranks. `x`: ... x in, the same on all ranks; `weight` and
// `bias`: this rank's rows (TensorSplit::kRows or kRowsOfThree). Returns this rank's outputs. In
// the backward pass, if links run aside, the weight's gradient is computed while that of `x` is
// summed.
at::Tensor ColumnLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        TensorLinks* links);

// A linear layer with inputs split over ranks. `x`: this rank's part; `weight`: its columns
// (TensorSplit::kColumns). The whole `bias` is added once, to the sum. Returns ... x out, the same
// on all ranks.
at::Tensor RowLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     TensorLinks* links);

// The embeddings of `tokens` (int64, any shape) from a vocabulary of size `vocabulary`. `weight`:
// this rank's rows (TensorSplit::kVocabulary). The same on all ranks. Throws std::invalid_argument
// with one sentence if, on the CPU, a token is outside of the vocabulary.
at::Tensor VocabularyEmbedding(const at::Tensor& tokens, const at::Tensor& weight,
                               std::int64_t vocabulary, TensorLinks* links);

// The positions of this rank's part of a sequence of `length`, from 0: all, unless the sequence is
// split.
at::Tensor OwnPositions(std::int64_t length, const at::TensorOptions& type,
                        const TensorLinks* links);

// This rank's part of the scores (logits) of all tokens for `x`, ... x width and the same on all
// ranks: ... x rows of `weight`, which is split as above. Padding beyond `vocabulary` gets
// -infinity, so its probability and its gradient are 0.
at::Tensor VocabularyScores(const at::Tensor& x, const at::Tensor& weight, std::int64_t vocabulary,
                            TensorLinks* links);

// How a parameter is split for tensor parallelism, where each rank has a part of every layer.

// Weights are out x in, as torch.nn.Linear has them, biases of `out` numbers.
enum class TensorSplit : std::uint8_t {
  kWhole,    // every rank has all of it
  kRows,     // a part of the outputs
  kColumns,  // a part of the inputs
  // Rows are queries, keys and values, a third each, and each third is divided by heads: a rank has
  // the same part of all three. (A plain part of the rows could be queries only.)
  kRowsOfThree,
  // Rows are tokens, whose number need not be divisible: padded with rows of zeros at the end.
  kVocabulary,
};

// The number of rows or columns to split, which the number of parts must divide; 0 if that may be
// any.
std::int64_t SizeToDivide(const at::Tensor& whole, TensorSplit split);

// Part `part` of `parts` of `whole`, in its own memory. All parts have the same shape. Throws
// std::invalid_argument if `parts` does not divide the size to split.
at::Tensor CutOf(const at::Tensor& whole, TensorSplit split, int part, int parts);

// The inverse: joins all `parts` to the whole tensor, in its own memory. `rows_of_the_whole` is its
// size(0), which parts of a vocabulary do not show; other splits ignore it.
at::Tensor Join(const std::vector<at::Tensor>& parts, TensorSplit split,
                std::int64_t rows_of_the_whole);

}  // namespace muster::trainer
