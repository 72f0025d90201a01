// How a parameter is cut for tensor parallelism, where each rank has a part of every layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// Weights are out x in, as torch.nn.Linear has them, biases of `out` numbers.
enum class TensorSplit : std::uint8_t {
  kWhole,    // every rank has all of it
  kRows,     // a part of the outputs
  kColumns,  // a part of the inputs
  // Rows are queries, keys and values, a third each, and each third by heads: a rank has the same
  // part of all three. (A part of the rows as they stand could be queries alone.)
  kRowsOfThree,
  // Rows are tokens, whose number need not be divisible: rows of zeros are added at the end.
  kVocabulary,
};

// The rows, or the columns, that ranks share out: what the number of parts must divide, and 0 if it
// may be any.
std::int64_t SizeToDivide(const at::Tensor& whole, TensorSplit split);

// The part `part` of `parts` of `whole`, in memory of its own. All parts have the same shape.
// Throws std::invalid_argument when `parts` does not divide what is to be cut.
at::Tensor CutOf(const at::Tensor& whole, TensorSplit split, int part, int parts);

// The opposite: the tensor whose parts are `parts`, all of them, in memory of its own.
// `rows_of_the_whole` is its size(0), which parts of a vocabulary do not tell; other splits ignore
// it.
at::Tensor Join(const std::vector<at::Tensor>& parts, TensorSplit split,
                std::int64_t rows_of_the_whole);

}  // namespace muster::trainer
