#include "trainer/data/tokens/token_range.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace muster::trainer {

// Tokens lie in files as this machine has its numbers.
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

}  // namespace muster::trainer
