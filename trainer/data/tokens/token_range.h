// A run of tokens, in a file or in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::trainer {

// How a token is stored: as an unsigned little-endian number.
enum class TokenType { kByte, kUint16, kUint32 };

// The size of one token.
std::int64_t BytesOf(TokenType type);
// "byte", "uint16" or "uint32".
std::string NameOf(TokenType type);
// kUint16 if that can hold every token of a vocabulary of this size, else kUint32.
TokenType TypeFor(std::int64_t vocabulary);

struct TokenRange {
  std::shared_ptr<const void> owner;  // keeps the tokens alive: a mapped file or memory
  const std::uint8_t* begin = nullptr;
  std::int64_t size = 0;  // in tokens
  TokenType type = TokenType::kByte;
  // For error messages: the path of the file, and how many of its tokens come before this range.
  std::string source;
  std::int64_t first = 0;

  // Returns the part of `count` tokens that begins at token `from`. Both must be in range.
  TokenRange Part(std::int64_t from, std::int64_t count) const;
};

// Returns token `place` of `range`, in [0, range.size).
std::uint32_t TokenAt(const TokenRange& range, std::int64_t place);

std::int64_t TotalTokens(const std::vector<TokenRange>& ranges);

// Returns the first `size` tokens of all ranges together, and the rest. Leaves out empty ranges.
std::pair<std::vector<TokenRange>, std::vector<TokenRange>> SplitAt(
    const std::vector<TokenRange>& ranges, std::int64_t size);

}  // namespace muster::trainer
