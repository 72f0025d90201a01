#include "trainer/worker/printable.h"

namespace muster::trainer {

std::string Printable(std::string_view text, bool lines) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F in UTF-8
      shown += '?';
      ++i;
    } else {
      const bool control = (byte < 0x20 && !(lines && byte == '\n')) || byte == 0x7f;
      shown += control ? '?' : text[i];
    }
  }
  return shown;
}

}  // namespace muster::trainer
