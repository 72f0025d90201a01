#include "trainer/models/tensor_split.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

// Rows of queries, keys and values as a dimension of their own: 3 x rows / 3 x ...
at::Tensor ByThree(const at::Tensor& rows) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[0] /= 3;
  sizes.insert(sizes.begin(), 3);
  return rows.reshape(sizes);
}

// A vocabulary's part: its rows of `whole`, and zeros for those that there are not.
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
