// A run of tokens, in a file or in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  // For error messages: the file's path, and how many of its tokens precede this range.
  std::string source;
  std::int64_t first = 0;

  // Returns the `count` tokens from position `from`. Both must be in range.
  TokenRange Part(std::int64_t from, std::int64_t count) const;
};

// Returns token `place` of `range`, in [0, range.size).
std::uint32_t TokenAt(const TokenRange& range, std::int64_t place);

std::int64_t TotalTokens(const std::vector<TokenRange>& ranges);

// Returns the first `size` tokens of all ranges, and the rest. Leaves out empty ranges.
std::pair<std::vector<TokenRange>, std::vector<TokenRange>> SplitAt(
    const std::vector<TokenRange>& ranges, std::int64_t size);

// Checks that a file of tokens has the type and vocabulary that the user specified.

// Returns a sentence about the first token of `range` that is not below `vocabulary`, with its file
// and position; nullopt if there is none.
std::optional<std::string> ForeignToken(const TokenRange& range, std::int64_t vocabulary);

// Whether `range`, read as uint16, looks like uint32: every other token is 0. Needs at least 16
// tokens.
bool LooksLikeUint32(const TokenRange& range);

// The samples of text data: windows of tokens.

// Consecutive windows of `context` tokens without overlap, over several ranges; no window crosses
// from one range into the next. A sample's targets are its inputs shifted by one token. In
// training, all windows of an epoch are shifted by 0 to context - 1 tokens, drawn from (seed,
// epoch), so that over many epochs each token is seen at every position of a window.
class TokenWindows {
 public:
  // `context` and `vocabulary` must be at least 1.
  TokenWindows(std::vector<TokenRange> ranges, std::int64_t context, std::int64_t vocabulary,
               std::uint64_t seed);

  std::int64_t context() const { return context_; }
  std::int64_t vocabulary() const { return vocabulary_; }

  // The sum of (tokens - context) / context over all ranges, except those of less than 2 * context
  // tokens: excludes the window that an epoch's shift may cut off.
  std::int64_t size() const { return first_window_.back(); }

  // Returns the shift of the training windows in `epoch`.
  std::int64_t ShiftOf(std::int64_t epoch) const;

  // Writes window `index`, in [0, size()), shifted by `shift` tokens: `context` numbers to each of
  // `inputs` and `targets`. Throws std::invalid_argument, with one sentence that names file and
  // position, if a token is outside of the vocabulary.
  void Copy(std::int64_t index, std::int64_t shift, std::int64_t* inputs,
            std::int64_t* targets) const;

 private:
  std::vector<TokenRange> ranges_;
  std::int64_t context_;
  std::int64_t vocabulary_;
  std::uint64_t seed_;
  std::vector<std::int64_t> first_window_;  // index of each range's first window, then size()
};

}  // namespace muster::trainer
