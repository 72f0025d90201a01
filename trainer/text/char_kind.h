// Characters as regular expressions classify them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::trainer {

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
// character counts as one of its own, of kind kOther.
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
