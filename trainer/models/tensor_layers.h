// Layers of which each rank has a part. Without links they are the ordinary layers, bit for bit.
// What is "the same on all ranks" is each rank's part of the sequence where they split that, as
// TensorLinks says: B x T / ranks x ..., and everything else is of all T.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "trainer/models/tensor_links.h"

namespace muster::trainer {

// A linear layer of whose outputs each rank has a part. `x`: ... x in, the same on all ranks;
// `weight` and `bias`: this rank's rows (TensorSplit::kRows or kRowsOfThree). Returns its outputs.
// Backward, where links run aside, the weight's gradient is computed while that of `x` is summed.
at::Tensor ColumnLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        TensorLinks* links);

// A linear layer of whose inputs each rank has a part. `x`: this rank's; `weight`: its columns
// (TensorSplit::kColumns). The whole `bias` is added once, to the sum. Returns ... x out, the same
// on all ranks.
at::Tensor RowLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     TensorLinks* links);

// The embeddings of `tokens` (int64, any shape), of `vocabulary` that there are. `weight`: this
// rank's rows (TensorSplit::kVocabulary). The same on all ranks. Throws std::invalid_argument with
// one sentence when, on the CPU, one is none of them.
at::Tensor VocabularyEmbedding(const at::Tensor& tokens, const at::Tensor& weight,
                               std::int64_t vocabulary, TensorLinks* links);

// The positions of this rank's part of a sequence of `length`, from 0: all, unless they split it.
at::Tensor OwnPositions(std::int64_t length, const at::TensorOptions& type,
                        const TensorLinks* links);

// This rank's part of the scores (logits) of all tokens for `x`, ... x width and the same on all
// ranks: ... x rows of `weight`, which is split as above. What stands for none of the `vocabulary`
// gets -infinity, so its probability is 0, and its gradient, too.
at::Tensor VocabularyScores(const at::Tensor& x, const at::Tensor& weight, std::int64_t vocabulary,
                            TensorLinks* links);

}  // namespace muster::trainer
