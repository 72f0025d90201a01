// Splits text into words, whose bytes are then merged into tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::trainer {

// The regular expression whose matches are the words. Each character belongs to a match. Both are
// implemented by hand: RE2 has no lookahead, and std::regex no Unicode.
enum class WordRule {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  // \s*[\r\n]+|\s+(?!\S)|\s+, in one line: GPT-4's and Llama 3's
  kGpt4,
};

// Returns the rule with exactly this regular expression, or nullopt.
std::optional<WordRule> RuleOf(std::string_view regex);

// Returns the length in bytes of the first word of `text`, which must not be empty. Returns 0 if
// the text may continue (not `complete`) and more of it could change the word.
std::size_t FirstWord(WordRule rule, std::string_view text, bool complete);

// Characters as regular expressions classify them.

enum class CharKind : std::uint8_t {
  kEnd,     // there is no character
  kLetter,  // \p{L}
  kNumber,  // \p{N}
  kSpace,   // \s, which is Unicode's White_Space
  kOther,   // anything else, such as punctuation and emoji
};

struct Char {
  CharKind kind = CharKind::kEnd;
  std::uint8_t bytes = 0;
};

// The length of the longest character, in bytes.
inline constexpr std::size_t kLongestChar = 4;

namespace internal {
Char CharBeyondAscii(std::string_view text, std::size_t at);
}  // namespace internal

// Returns the character at byte `at` of `text`, in UTF-8. A byte that is not part of a valid
// character counts as a separate one of kind kOther.
inline Char CharAt(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  const char c = text[at];
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return {CharKind::kLetter, 1};
  if (c == ' ' || (c >= '\t' && c <= '\r')) return {CharKind::kSpace, 1};
  if (c >= '0' && c <= '9') return {CharKind::kNumber, 1};
  if ((c & 0x80) == 0) return {CharKind::kOther, 1};
  return internal::CharBeyondAscii(text, at);
}

}  // namespace muster::trainer
