#include "trainer/models/tensor_layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// linear(Copy(x)) whose backward pass computes the weight's gradient while that of x is exchanged,
// and which keeps of a sequence this rank's part alone and gathers it again.
struct ColumnFunction : torch::autograd::Function<ColumnFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, TensorLinks* links) {
    context->save_for_backward({x, weight});
    context->saved_data["links"] = reinterpret_cast<std::int64_t>(links);
    return at::linear(links->BeginCopy(x)(), weight, bias.numel() > 0 ? bias : at::Tensor());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto* const links = reinterpret_cast<TensorLinks*>(context->saved_data["links"].toInt());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& gradient = gradients[0];
    const at::ScalarType type = gradient.scalar_type();  // with autocast not the parameters'
    variable_list result(4);
    TensorLinks::Pending inputs;
    TensorLinks::Pending of_x;
    if (context->needs_input_grad(1)) inputs = links->BeginCopy(x);
    if (context->needs_input_grad(0)) {
      of_x = links->BeginReduce(gradient.matmul(weight.to(type)).to(x.scalar_type()));
    }
    const at::Tensor rows = gradient.flatten(0, -2);
    if (inputs) {
      result[1] = rows.t().mm(inputs().to(type).flatten(0, -2)).to(weight.scalar_type());
    }
    if (context->needs_input_grad(2)) result[2] = rows.sum(0).to(weight.scalar_type());
    if (of_x) result[0] = of_x();
    return result;
  }
};

}  // namespace

at::Tensor ColumnLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        TensorLinks* links) {
  if (links == nullptr) return at::linear(x, weight, bias);
  if (links->splits_sequence() || links->runs_aside()) {
    // A function takes no undefined tensor.
    return ColumnFunction::apply(x, weight, bias.defined() ? bias : at::empty({0}, x.options()),
                                 links);
  }
  return at::linear(links->Copy(x), weight, bias);
}

at::Tensor OwnPositions(std::int64_t length, const at::TensorOptions& type,
                        const TensorLinks* links) {
  if (links == nullptr || !links->splits_sequence()) return at::arange(length, type);
  const std::int64_t own = length / links->parts();
  return at::arange(links->part() * own, (links->part() + 1) * own, type);
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
  if (tokens == rows) return ColumnLinear(x, weight, /*bias=*/{}, links);
  // As a bias it costs no pass over the scores.
  const at::Tensor bias = at::zeros({rows}, weight.options().requires_grad(false));
  bias.narrow(0, tokens, rows - tokens).fill_(-std::numeric_limits<double>::infinity());
  return ColumnLinear(x, weight, bias, links);
}

}  // namespace muster::trainer
