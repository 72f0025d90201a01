#include "launcher/replay/harmless.h"

#include <cstddef>

namespace muster::launcher {
namespace {

unsigned char ByteAt(absl::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// The bytes of the character that begins at `at`, if that is not to be shown; else 0.
std::size_t SizeOfHarmful(absl::string_view text, std::size_t at) {
  const unsigned char first = ByteAt(text, at), second = ByteAt(text, at + 1);
  const unsigned char third = ByteAt(text, at + 2);
  if ((first < 0x20 && first != '\n') || first == 0x7f) return 1;
  if (first == 0xc2 && second >= 0x80 && second < 0xa0) return 2;
  // The marks of Unicode's bidirectional algorithm (UAX #9, 2): U+061C, U+200E and U+200F, U+202A
  // to U+202E, U+2066 to U+2069; and the separators of lines and paragraphs, U+2028 and U+2029.
  if (first == 0xd8 && second == 0x9c) return 2;
  if (first != 0xe2) return 0;
  if (second == 0x80 && (third == 0x8e || third == 0x8f)) return 3;
  if (second == 0x80 && third >= 0xa8 && third <= 0xae) return 3;
  if (second == 0x81 && third >= 0xa6 && third <= 0xa9) return 3;
  return 0;
}

}  // namespace

std::string Harmless(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t harmful = SizeOfHarmful(text, at);
    out += harmful > 0 ? '?' : text[at];
    at += harmful > 0 ? harmful : 1;
  }
  return out;
}

}  // namespace muster::launcher
