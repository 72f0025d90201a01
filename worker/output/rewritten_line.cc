#include "worker/output/rewritten_line.h"

#include <algorithm>

namespace muster::worker {
namespace {

// One unit of a text: how many bytes, and how many columns they take.
struct Unit {
  std::size_t size;
  std::size_t width;
};

// An escape sequence "ESC [ parameters letter", or one character. Wide characters are taken for
// narrow ones: telling them apart needs tables, and a bar is rarely made of them.
Unit NextUnit(std::string_view text) {
  std::size_t size = 1;
  if (text.front() == '\x1b') {
    if (text.size() > 1 && text[1] == '[') ++size;
    while (size < text.size() && size > 1 && !(text[size] >= '@' && text[size] <= '~')) ++size;
    return {std::min(size + 1, text.size()), 0};
  }
  // Bytes 10xxxxxx continue a character.
  while (size < text.size() && (text[size] & 0xc0) == 0x80) ++size;
  return {size, 1};
}

}  // namespace

std::string RewrittenLine::Rewrite(const void* writer, std::string_view line, int columns) {
  std::string bytes = writer_ == nullptr ? "" : writer_ == writer ? "\r" : "\n";
  const std::size_t before = writer_ == writer ? width_ : 0;
  // The last column stays free: a character there makes some terminals go to the next row.
  const std::string fitting =
      columns > 1 ? CutToWidth(line, static_cast<std::size_t>(columns) - 1) : std::string(line);
  writer_ = writer;
  width_ = VisibleWidth(fitting);
  bytes += fitting;
  if (before > width_) bytes.append(before - width_, ' ');
  return bytes;
}

std::string RewrittenLine::Leave(const void* writer) {
  if (writer_ == nullptr) return "";
  const bool own = writer_ == writer;
  writer_ = nullptr;
  return own ? "\r" + std::string(width_, ' ') + "\r" : "\n";
}

std::size_t VisibleWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Unit unit = NextUnit(text);
    width += unit.width;
    text.remove_prefix(unit.size);
  }
  return width;
}

std::string CutToWidth(std::string_view text, std::size_t columns) {
  std::string fitting;
  std::size_t width = 0;
  while (!text.empty()) {
    const Unit unit = NextUnit(text);
    if (width + unit.width <= columns) {
      fitting.append(text.substr(0, unit.size));
      width += unit.width;
    }
    text.remove_prefix(unit.size);
  }
  return fitting;
}

}  // namespace muster::worker
