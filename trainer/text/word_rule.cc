#include "trainer/text/word_rule.h"

#include <algorithm>
#include <vector>

#include "trainer/text/unicode_ranges.h"

namespace muster::trainer {
namespace {

constexpr char kGpt2Regex[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr char kGpt4Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr int kMostDigits = 3;

bool IsLineBreak(char c) {
  return c == '\r' || c == '\n';
}

// Reads a text, and records whether anything depended on its end.
class Look {
 public:
  explicit Look(std::string_view text) : text_(text) {}

  Char At(std::size_t at) {
    if (at + kLongestChar > text_.size()) saw_end_ = true;
    return CharAt(text_, at);
  }

  // Zero past the end.
  char Byte(std::size_t at) {
    if (at < text_.size()) return text_[at];
    saw_end_ = true;
    return '\0';
  }

  // The end of the run of characters of `kind` that begins at `at`.
  std::size_t EndOf(CharKind kind, std::size_t at) {
    for (Char c = At(at); c.kind == kind; c = At(at)) at += c.bytes;
    return at;
  }

  bool saw_end() const { return saw_end_; }

 private:
  const std::string_view text_;
  bool saw_end_ = false;
};

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The length of 's|'t|'re|'ve|'m|'ll|'d at the beginning; 0 if there is none.
std::size_t ContractionLength(Look& look, bool any_case) {
  if (look.Byte(0) != '\'') return 0;
  const auto letter = [&](std::size_t at) {
    return any_case ? Lower(look.Byte(at)) : look.Byte(at);
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    case '\xc5':  // U+017F, the long s, is an S in another case
      return any_case && look.Byte(2) == '\xbf' ? 3 : 0;
    default:
      return 0;
  }
}

// \s+(?!\S)|\s+ at a space: all spaces, but the last is left to the following word.
std::size_t SpacesLength(Look& look) {
  std::size_t last = 0;
  std::size_t end = 0;
  for (Char c = look.At(0); c.kind == CharKind::kSpace; c = look.At(end)) {
    last = end;
    end += c.bytes;
  }
  return look.At(end).kind == CharKind::kEnd || last == 0 ? end : last;
}

// \s*[\r\n]+ at a space: up to the last line break among the spaces; 0 if there is none.
std::size_t LinesLength(Look& look) {
  std::size_t lines = 0;
  std::size_t end = 0;
  for (Char c = look.At(0); c.kind == CharKind::kSpace; c = look.At(end)) {
    const bool line_break = IsLineBreak(look.Byte(end));
    end += c.bytes;
    if (line_break) lines = end;
  }
  return lines;
}

std::size_t Gpt2Length(Look& look) {
  if (const std::size_t length = ContractionLength(look, /*any_case=*/false)) return length;
  const std::size_t begin = look.Byte(0) == ' ' ? 1 : 0;
  const CharKind kind = look.At(begin).kind;
  if (kind == CharKind::kSpace || kind == CharKind::kEnd) return SpacesLength(look);
  return look.EndOf(kind, begin);
}

std::size_t Gpt4Length(Look& look) {
  if (const std::size_t length = ContractionLength(look, /*any_case=*/true)) return length;
  const Char first = look.At(0);
  if (first.kind == CharKind::kLetter) return look.EndOf(CharKind::kLetter, 0);
  if (first.kind == CharKind::kNumber) {
    std::size_t end = 0;
    for (int i = 0; i < kMostDigits; ++i) {
      const Char digit = look.At(end);
      if (digit.kind != CharKind::kNumber) break;
      end += digit.bytes;
    }
    return end;
  }
  if (!IsLineBreak(look.Byte(0)) && look.At(first.bytes).kind == CharKind::kLetter) {
    return look.EndOf(CharKind::kLetter, first.bytes);
  }
  const std::size_t begin = look.Byte(0) == ' ' ? 1 : 0;
  if (look.At(begin).kind == CharKind::kOther) {
    std::size_t end = look.EndOf(CharKind::kOther, begin);
    while (IsLineBreak(look.Byte(end))) ++end;
    return end;
  }
  if (const std::size_t length = LinesLength(look)) return length;
  return SpacesLength(look);
}

}  // namespace

std::optional<WordRule> RuleOf(std::string_view regex) {
  if (regex == kGpt2Regex) return WordRule::kGpt2;
  if (regex == kGpt4Regex) return WordRule::kGpt4;
  return std::nullopt;
}

std::size_t FirstWord(WordRule rule, std::string_view text, bool complete) {
  Look look(text);
  const std::size_t length = rule == WordRule::kGpt2 ? Gpt2Length(look) : Gpt4Length(look);
  return complete || !look.saw_end() ? length : 0;
}

namespace {

constexpr char32_t kNotACharacter = 0xffffffff;

// White_Space beyond ASCII (PropList.txt).
constexpr CodeRange kSpaces[] = {{0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
                                 {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                 {0x205f, 0x205f}, {0x3000, 0x3000}};

// The kind of each code point up to the last letter: 200 KiB, and a single lookup instead of ten.
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

// According to RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
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
