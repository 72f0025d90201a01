#include "trainer/data/samples/token_windows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/data/samples/sample_order.h"

namespace muster::trainer {

// Files of tokens have this machine's byte order.
static_assert(std::endian::native == std::endian::little);

std::int64_t BytesOf(TokenType type) {
  switch (type) {
    case TokenType::kByte:
      return 1;
    case TokenType::kUint16:
      return 2;
    case TokenType::kUint32:
      return 4;
  }
  return 1;
}

std::string NameOf(TokenType type) {
  switch (type) {
    case TokenType::kByte:
      return "byte";
    case TokenType::kUint16:
      return "uint16";
    case TokenType::kUint32:
      return "uint32";
  }
  return "";
}

TokenType TypeFor(std::int64_t vocabulary) {
  return vocabulary <= std::int64_t{1} << 16 ? TokenType::kUint16 : TokenType::kUint32;
}

TokenRange TokenRange::Part(std::int64_t from, std::int64_t count) const {
  TokenRange part = *this;
  part.begin += from * BytesOf(type);
  part.first += from;
  part.size = count;
  return part;
}

std::uint32_t TokenAt(const TokenRange& range, std::int64_t place) {
  const std::int64_t bytes = BytesOf(range.type);
  std::uint32_t token = 0;
  std::memcpy(&token, range.begin + place * bytes, static_cast<std::size_t>(bytes));
  return token;
}

std::int64_t TotalTokens(const std::vector<TokenRange>& ranges) {
  std::int64_t total = 0;
  for (const TokenRange& range : ranges) total += range.size;
  return total;
}

std::pair<std::vector<TokenRange>, std::vector<TokenRange>> SplitAt(
    const std::vector<TokenRange>& ranges, std::int64_t size) {
  std::pair<std::vector<TokenRange>, std::vector<TokenRange>> split;
  for (const TokenRange& range : ranges) {
    const std::int64_t before = std::min(range.size, size);
    if (before > 0) split.first.push_back(range.Part(0, before));
    if (before < range.size) split.second.push_back(range.Part(before, range.size - before));
    size -= before;
  }
  return split;
}

std::optional<std::string> ForeignToken(const TokenRange& range, std::int64_t vocabulary) {
  for (std::int64_t i = 0; i < range.size; ++i) {
    const std::uint32_t token = TokenAt(range, i);
    if (token < vocabulary) continue;
    const std::int64_t place = range.first + i;
    return absl::StrCat(
        "read ", range.source, ": its token ", place, ", at byte ", place * BytesOf(range.type),
        ", is ", token, ", which is outside of the vocabulary of ", vocabulary,
        "; --vocabulary or --token-type (", NameOf(range.type), ") does not fit this file");
  }
  return std::nullopt;
}

bool LooksLikeUint32(const TokenRange& range) {
  constexpr std::int64_t kEnough = 16;
  if (range.type != TokenType::kUint16 || range.size < kEnough) return false;
  bool others = false;
  for (std::int64_t i = 0; i + 1 < range.size; i += 2) {
    if (TokenAt(range, i + 1) != 0) return false;
    others |= TokenAt(range, i) != 0;
  }
  return others;
}

namespace {

// Copies `count` tokens starting at `from` to `inputs`, and those one position later to `targets`.
// Returns the largest of all.
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
  // The last range that begins at or before the window; earlier ones with the same begin have no
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
