#include "trainer/models/tensor_layers.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kSequence = 1;  // of B x T x anything

// The links outlive the graph, which stores their address.
void KeepLinks(TensorLinks* links, AutogradContext* context) {
  context->saved_data["links"] = reinterpret_cast<std::int64_t>(links);
}

TensorLinks& LinksOf(AutogradContext* context) {
  return *reinterpret_cast<TensorLinks*>(context->saved_data["links"].toInt());
}

struct CopyFunction : torch::autograd::Function<CopyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, TensorLinks* links) {
    KeepLinks(links, context);
    const at::Tensor whole = links->BeginCopy(x)();
    // autograd would not record a function that returns its input itself.
    return whole.is_same(x) ? x.view_as(x) : whole;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {LinksOf(context).BeginReduce(gradients[0])(), at::Tensor()};
  }
};

struct ReduceFunction : torch::autograd::Function<ReduceFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, TensorLinks* links) {
    KeepLinks(links, context);
    return links->BeginReduce(x)();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {LinksOf(context).BeginCopy(gradients[0])(), at::Tensor()};
  }
};

// `all` is the ranks' gathered tensors, ranks x ...
struct OwnPartFunction : torch::autograd::Function<OwnPartFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*x*/,
                            const at::Tensor& all, std::int64_t dimension, TensorLinks* links) {
    KeepLinks(links, context);
    context->saved_data["dimension"] = dimension;
    return at::cat(all.unbind(0), dimension);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const TensorLinks& links = LinksOf(context);
    const std::int64_t dimension = context->saved_data["dimension"].toInt();
    const std::int64_t own = gradients[0].size(dimension) / links.parts();
    return {gradients[0].narrow(dimension, links.part() * own, own), at::Tensor(), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor TensorLinks::Copy(const at::Tensor& x) {
  return CopyFunction::apply(x, this);
}

at::Tensor TensorLinks::Reduce(const at::Tensor& x) {
  return ReduceFunction::apply(x, this);
}

at::Tensor TensorLinks::Gather(const at::Tensor& x, std::int64_t dimension) {
  const at::Tensor all = BeginGather(x.detach().contiguous())();
  return OwnPartFunction::apply(x, all, dimension < 0 ? dimension + x.dim() : dimension, this);
}

TensorLinks::Pending TensorLinks::BeginCopy(const at::Tensor& x) {
  if (!splits_sequence()) return [x] { return x; };
  return
      [gathered = BeginGather(x.contiguous())] { return at::cat(gathered().unbind(0), kSequence); };
}

TensorLinks::Pending TensorLinks::BeginReduce(const at::Tensor& x) {
  if (!splits_sequence()) return BeginSum(x.contiguous());
  if (x.size(kSequence) % parts() != 0) {
    throw std::invalid_argument(absl::StrCat("cut a sequence of ", x.size(kSequence), " over ",
                                             parts(), " ranks: the parts would not be equal"));
  }
  // ranks x B x T / ranks x ...
  return BeginScatter(at::stack(x.chunk(parts(), kSequence)));
}

namespace {

// linear(Copy(x)) whose backward pass computes the weight's gradient while that of x is exchanged;
// with a split sequence it keeps only this rank's part, and gathers the rest again.
struct ColumnFunction : torch::autograd::Function<ColumnFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, TensorLinks* links) {
    context->save_for_backward({x, weight});
    KeepLinks(links, context);
    return at::linear(links->BeginCopy(x)(), weight, bias.numel() > 0 ? bias : at::Tensor());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    TensorLinks& links = LinksOf(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& gradient = gradients[0];
    const at::ScalarType type = gradient.scalar_type();  // with autocast not that of the parameters
    variable_list result(4);
    TensorLinks::Pending inputs;
    TensorLinks::Pending of_x;
    if (context->needs_input_grad(1)) inputs = links.BeginCopy(x);
    if (context->needs_input_grad(0)) {
      of_x = links.BeginReduce(gradient.matmul(weight.to(type)).to(x.scalar_type()));
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
    // apply() rejects undefined tensors.
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
  // A token that belongs to no rank would silently get an embedding of 0.
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
  // As a bias it costs no additional pass over the scores.
  const at::Tensor bias = at::zeros({rows}, weight.options().requires_grad(false));
  bias.narrow(0, tokens, rows - tokens).fill_(-std::numeric_limits<double>::infinity());
  return ColumnLinear(x, weight, bias, links);
}

namespace {

// Rows of queries, keys and values as a separate dimension: 3 x rows / 3 x ...
at::Tensor ByThree(const at::Tensor& rows) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[0] /= 3;
  sizes.insert(sizes.begin(), 3);
  return rows.reshape(sizes);
}

// A vocabulary's part: its rows of `whole`, padded with zeros.
at::Tensor VocabularyPart(const at::Tensor& whole, int part, int parts) {
  const std::int64_t rows = (whole.size(0) + parts - 1) / parts;
  const std::int64_t begin = std::min(part * rows, whole.size(0));
  const std::int64_t own = std::min(rows, whole.size(0) - begin);
  std::vector<std::int64_t> sizes = whole.sizes().vec();
  sizes[0] = rows;
  at::Tensor cut = at::zeros(sizes, whole.options());
  cut.narrow(0, 0, own).copy_(whole.narrow(0, begin, own));
  return cut;
}

}  // namespace

std::int64_t SizeToDivide(const at::Tensor& whole, TensorSplit split) {
  switch (split) {
    case TensorSplit::kWhole:
    case TensorSplit::kVocabulary:
      return 0;
    case TensorSplit::kRows:
      return whole.size(0);
    case TensorSplit::kColumns:
      return whole.size(1);
    case TensorSplit::kRowsOfThree:
      return whole.size(0) / 3;
  }
  return 0;
}

at::Tensor CutOf(const at::Tensor& whole, TensorSplit split, int part, int parts) {
  if (SizeToDivide(whole, split) % parts != 0) {
    throw std::invalid_argument(absl::StrCat(
        "cut a parameter for ", parts, " ranks: its ", SizeToDivide(whole, split), " ",
        split == TensorSplit::kColumns ? "columns" : "rows", " cannot be divided by that"));
  }
  const auto along = [&](const at::Tensor& tensor, std::int64_t dimension) {
    const std::int64_t size = tensor.size(dimension) / parts;
    return tensor.narrow(dimension, part * size, size);
  };
  constexpr auto kOwnMemory = at::MemoryFormat::Contiguous;
  switch (split) {
    case TensorSplit::kWhole:
      return whole.clone();
    case TensorSplit::kRows:
      return along(whole, 0).clone(kOwnMemory);
    case TensorSplit::kColumns:
      return along(whole, 1).clone(kOwnMemory);
    case TensorSplit::kRowsOfThree:
      return along(ByThree(whole), 1).clone(kOwnMemory).flatten(0, 1);
    case TensorSplit::kVocabulary:
      return VocabularyPart(whole, part, parts);
  }
  return whole;
}

at::Tensor Join(const std::vector<at::Tensor>& parts, TensorSplit split,
                std::int64_t rows_of_the_whole) {
  switch (split) {
    case TensorSplit::kWhole:
      return parts[0].clone();
    case TensorSplit::kRows:
      return at::cat(parts, 0);
    case TensorSplit::kColumns:
      return at::cat(parts, 1);
    case TensorSplit::kRowsOfThree: {
      std::vector<at::Tensor> thirds;
      for (const at::Tensor& part : parts) thirds.push_back(ByThree(part));
      return at::cat(thirds, 1).flatten(0, 1);
    }
    case TensorSplit::kVocabulary:
      return at::cat(parts, 0).narrow(0, 0, rows_of_the_whole).clone();
  }
  return parts[0];
}

}  // namespace muster::trainer
