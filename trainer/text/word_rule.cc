#include "trainer/text/word_rule.h"

#include "trainer/text/char_kind.h"

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

// Looks at a text, and remembers whether anything depended on where it ends.
class Look {
 public:
  explicit Look(std::string_view text) : text_(text) {}

  Char At(std::size_t at) {
    if (at + kLongestChar > text_.size()) saw_end_ = true;
    return CharAt(text_, at);
  }

  // Zero behind the end.
  char Byte(std::size_t at) {
    if (at < text_.size()) return text_[at];
    saw_end_ = true;
    return '\0';
  }

  // Where the characters of `kind` end that begin at `at`.
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

// The length of 's|'t|'re|'ve|'m|'ll|'d at the beginning, 0 when there is none of them.
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

// \s+(?!\S)|\s+ where a space is: all spaces, but the last is left to the word that follows.
std::size_t SpacesLength(Look& look) {
  std::size_t last = 0;
  std::size_t end = 0;
  for (Char c = look.At(0); c.kind == CharKind::kSpace; c = look.At(end)) {
    last = end;
    end += c.bytes;
  }
  return look.At(end).kind == CharKind::kEnd || last == 0 ? end : last;
}

// \s*[\r\n]+ where a space is: to the last line break among the spaces, 0 when there is none.
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

}  // namespace muster::trainer
