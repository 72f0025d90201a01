// The code points that are letters, and those that are numbers.
#pragma once

#include <span>

namespace muster::trainer {

// The code points from `first` to `last`.
struct CodeRange {
  char32_t first;
  char32_t last;
};

// Those of general category L (Lu, Ll, Lt, Lm, Lo) in Unicode 15.0, in order: \p{L} of a regular
// expression.
std::span<const CodeRange> LetterRanges();

// Those of general category N (Nd, Nl, No), in order: \p{N}.
std::span<const CodeRange> NumberRanges();

}  // namespace muster::trainer
