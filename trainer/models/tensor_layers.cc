#include "trainer/models/tensor_layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace muster::trainer {

at::Tensor ColumnLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        TensorLinks* links) {
  return at::linear(links == nullptr ? x : links->Copy(x), weight, bias);
}

at::Tensor RowLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     TensorLinks* links) {
  if (links == nullptr) return at::linear(x, weight, bias);
  const at::Tensor sum = links->Reduce(at::linear(x, weight));
  return sum + bias.to(sum.scalar_type());  // with autocast the layer's type, not the parameter's
}

at::Tensor VocabularyEmbedding(const at::Tensor& tokens, const at::Tensor& weight,
                               std::int64_t vocabulary, TensorLinks* links) {
  if (links == nullptr) return at::embedding(weight, tokens);
  // Nobody would have it, and its embedding be 0 without a word.
  if (tokens.is_cpu() && tokens.numel() > 0 &&
      (tokens.min().item<std::int64_t>() < 0 || tokens.max().item<std::int64_t>() >= vocabulary)) {
    throw std::invalid_argument(absl::StrCat(
        "look up the embeddings of tokens from ", tokens.min().item<std::int64_t>(), " to ",
        tokens.max().item<std::int64_t>(), ": there are ", vocabulary, ", from 0"));
  }
  const std::int64_t rows = weight.size(0);
  const at::Tensor own = tokens - links->part() * rows;
  const at::Tensor elsewhere = own.lt(0).logical_or_(own.ge(rows)).unsqueeze(-1);
  const at::Tensor mine = at::embedding(weight, own.clamp(0, rows - 1));
  return links->Reduce(mine.masked_fill(elsewhere, 0));
}

at::Tensor VocabularyScores(const at::Tensor& x, const at::Tensor& weight, std::int64_t vocabulary,
                            TensorLinks* links) {
  if (links == nullptr) return at::linear(x, weight);
  const std::int64_t rows = weight.size(0);
  const std::int64_t tokens = std::clamp<std::int64_t>(vocabulary - links->part() * rows, 0, rows);
  const at::Tensor inputs = links->Copy(x);
  if (tokens == rows) return at::linear(inputs, weight);
  // As a bias it costs no pass over the scores.
  const at::Tensor bias = at::zeros({rows}, weight.options().requires_grad(false));
  bias.narrow(0, tokens, rows - tokens).fill_(-std::numeric_limits<double>::infinity());
  return at::linear(inputs, weight, bias);
}

}  // namespace muster::trainer
