#include "trainer/data/tokens/token_windows.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "trainer/data/loading/mixed_bits.h"
#include "trainer/data/tokens/token_check.h"

namespace muster::trainer {
namespace {

// Copies the `count` tokens from `from` on to `inputs`, and those one further to `targets`. Returns
// the largest of them all.
template <typename Token>
Token CopyWindow(const std::uint8_t* from, std::int64_t count, std::int64_t* inputs,
                 std::int64_t* targets) {
  const auto token = [from](std::int64_t i) {
    Token value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    return value;
  };
  Token largest = token(count);
  for (std::int64_t i = 0; i < count; ++i) {
    inputs[i] = token(i);
    targets[i] = token(i + 1);
    largest = std::max(largest, token(i));
  }
  return largest;
}

std::uint32_t CopyTokens(const TokenRange& range, std::int64_t begin, std::int64_t count,
                         std::int64_t* inputs, std::int64_t* targets) {
  const std::uint8_t* from = range.begin + begin * BytesOf(range.type);
  switch (range.type) {
    case TokenType::kByte:
      return CopyWindow<std::uint8_t>(from, count, inputs, targets);
    case TokenType::kUint16:
      return CopyWindow<std::uint16_t>(from, count, inputs, targets);
    case TokenType::kUint32:
      return CopyWindow<std::uint32_t>(from, count, inputs, targets);
  }
  return 0;
}

}  // namespace

TokenWindows::TokenWindows(std::vector<TokenRange> ranges, std::int64_t context,
                           std::int64_t vocabulary, std::uint64_t seed)
    : ranges_(std::move(ranges)),
      context_(context),
      vocabulary_(vocabulary),
      seed_(seed),
      first_window_{0} {
  for (const TokenRange& range : ranges_) {
    // A context from the command line can be larger than any text.
    const std::int64_t windows = std::max<std::int64_t>(0, (range.size - context) / context);
    first_window_.push_back(first_window_.back() + windows);
  }
}

std::int64_t TokenWindows::ShiftOf(std::int64_t epoch) const {
  return static_cast<std::int64_t>(MixedBits(seed_, epoch, /*index=*/0) %
                                   static_cast<std::uint64_t>(context_));
}

void TokenWindows::Copy(std::int64_t index, std::int64_t shift, std::int64_t* inputs,
                        std::int64_t* targets) const {
  // The last range that begins at or before the window; those before it of the same begin have no
  // windows.
  const auto after = std::upper_bound(first_window_.begin(), first_window_.end(), index);
  const auto place = static_cast<std::size_t>(after - first_window_.begin() - 1);
  const TokenRange& range = ranges_[place];
  const std::int64_t begin = (index - first_window_[place]) * context_ + shift;
  if (CopyTokens(range, begin, context_, inputs, targets) < vocabulary_) return;
  const auto foreign = ForeignToken(range.Part(begin, context_ + 1), vocabulary_);
  throw std::invalid_argument(foreign.value_or(""));
}

}  // namespace muster::trainer
