#include "base/safe_text.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>

namespace muster::base {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Sorted. Unicode's Default_Ignorable_Code_Point including the ranges reserved for it,
// Bidi_Control, line and paragraph separators, and interlinear annotation marks.
constexpr Range kUnseen[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},   {0x061C, 0x061C},
    {0x115F, 0x1160}, {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},
    {0x2060, 0x206F}, {0x3164, 0x3164},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

// The size of a UTF-8 character by its first byte; 0 if no character begins with it.
std::size_t SizeBy(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

bool MayBeKept(char32_t code) {
  return code == '\n' || code == '\t' || IsSeen(code);
}

void AppendEscaped(char32_t code, std::string& out) {
  char text[16];
  if (code > 0xFFFF) {
    const char32_t rest = code - 0x10000;
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", static_cast<unsigned>(0xD800 + (rest >> 10)),
                  static_cast<unsigned>(0xDC00 + (rest & 0x3FF)));
  } else {
    std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code));
  }
  out += text;
}

}  // namespace

std::optional<Character> FirstCharacter(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t size = SizeBy(byte(0));
  if (size == 0 || text.size() < size) return std::nullopt;
  if (size == 1) return Character{byte(0), 1};
  char32_t code = byte(0) & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[size] || code > 0x10FFFF || is_surrogate) return std::nullopt;
  return Character{code, size};
}

bool IsControl(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

bool IsSeen(char32_t code) {
  const auto range =
      std::upper_bound(std::begin(kUnseen), std::end(kUnseen), code,
                       [](char32_t one, const Range& each) { return one < each.first; });
  return range == std::begin(kUnseen) || std::prev(range)->last < code;
}

std::string SafeText(std::string_view text, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    const std::optional<Character> character = FirstCharacter(text);
    const std::size_t size = character ? character->size : 1;
    const std::string_view shown =
        character && MayBeKept(character->code) ? text.substr(0, size) : "?";
    if (out.size() + shown.size() > limit) break;
    out += shown;
    text.remove_prefix(size);
  }
  return out;
}

std::string SafeLine(std::string_view text, std::size_t limit) {
  std::string line = SafeText(text, limit);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string SafeJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    // Fast path: most of it is ASCII.
    const auto plain = std::find_if(json.begin(), json.end(),
                                    [](char c) { return (c < ' ' && c != '\n') || c == 0x7F; });
    out.append(json.begin(), plain);
    json.remove_prefix(static_cast<std::size_t>(plain - json.begin()));
    if (json.empty()) break;
    const std::optional<Character> character = FirstCharacter(json);
    const std::size_t size = character ? character->size : 1;
    if (!character || IsSeen(character->code)) {
      out += json.substr(0, size);
    } else {
      AppendEscaped(character->code, out);
    }
    json.remove_prefix(size);
  }
  return out;
}

namespace {

std::string_view EscapeOf(char c) {
  if (c == '/') return "%2F";
  if (c == '%') return "%25";
  return c == '\0' ? "%00" : "";
}

}  // namespace

std::string FileNameOf(std::string_view name, std::size_t limit) {
  std::string out;
  while (!name.empty()) {
    const std::optional<Character> character = FirstCharacter(name);
    const std::size_t size = character ? character->size : 1;
    const std::string_view escape = EscapeOf(name.front());
    const std::string_view piece = escape.empty() ? name.substr(0, size) : escape;
    if (out.size() + piece.size() > limit) break;
    out += piece;
    name.remove_prefix(size);
  }
  return out;
}

}  // namespace muster::base
