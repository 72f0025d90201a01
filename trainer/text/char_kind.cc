#include "trainer/text/char_kind.h"

#include <algorithm>
#include <vector>

#include "trainer/text/unicode_ranges.h"

namespace muster::trainer {
namespace {

constexpr char32_t kNotACharacter = 0xffffffff;

// White_Space beyond ASCII (PropList.txt).
constexpr CodeRange kSpaces[] = {{0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
                                 {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                 {0x205f, 0x205f}, {0x3000, 0x3000}};

// The kind of each code point up to the last letter: 200 KiB, and one look instead of ten.
std::vector<CharKind> MakeKinds() {
  std::vector<CharKind> kinds(LetterRanges().back().last + 1, CharKind::kOther);
  const auto set = [&](const CodeRange& range, CharKind kind) {
    std::fill(kinds.begin() + range.first, kinds.begin() + range.last + 1, kind);
  };
  for (const CodeRange& range : LetterRanges()) set(range, CharKind::kLetter);
  for (const CodeRange& range : NumberRanges()) set(range, CharKind::kNumber);
  for (const CodeRange& range : kSpaces) set(range, CharKind::kSpace);
  return kinds;
}

CharKind KindOf(char32_t code) {
  static const std::vector<CharKind>& kinds = *new std::vector<CharKind>(MakeKinds());
  return code < kinds.size() ? kinds[code] : CharKind::kOther;
}

struct Decoded {
  char32_t code = kNotACharacter;
  std::uint8_t bytes = 1;
};

// As RFC 3629 has it: no forms longer than need be, no surrogates, nothing above U+10FFFF.
Decoded DecodeChar(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  const std::uint8_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return {};
  char32_t code = first & (0x7fU >> bytes);
  for (std::uint8_t i = 1; i < bytes; ++i) {
    const unsigned next = byte(at + i);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  if (too_long || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return {};
  return {code, bytes};
}

}  // namespace

Char internal::CharBeyondAscii(std::string_view text, std::size_t at) {
  const Decoded decoded = DecodeChar(text, at);
  return {KindOf(decoded.code), decoded.bytes};
}

}  // namespace muster::trainer
