#include "rendezvous/wire/printable.h"

#include <algorithm>

namespace muster::rendezvous {
namespace {

// How many bytes the first character of `text` has; 0 if what is there is no UTF-8 (RFC 3629: no
// longer form than needed, no surrogates, nothing above U+10FFFF). `text` is not empty.
std::size_t CharacterSize(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_high = first == 0xf4 && byte(1) >= 0x90;
  return too_long || surrogate || too_high ? 0 : size;
}

// U+0000 to U+001F but for line feed and tab, U+007F to U+009F (the last 32 command terminals,
// too).
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 2) {
    return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  }
  return first == 0x7f || (first < 0x20 && first != '\n' && first != '\t');
}

}  // namespace

std::string Printable(std::string_view text, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    const std::size_t size = CharacterSize(text);
    const std::string_view character = text.substr(0, size);
    const std::string_view shown = size == 0 || IsControl(character) ? "?" : character;
    // A character is taken whole or not at all.
    if (out.size() + shown.size() > limit) break;
    out += shown;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string OneLine(std::string_view text, std::size_t limit) {
  std::string line = Printable(text, limit);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

}  // namespace muster::rendezvous
