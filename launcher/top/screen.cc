#include "launcher/top/screen.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/text.h"

namespace muster::launcher {
namespace {

// At least one character, also where that does not fit.
std::string Beginning(const std::string& text, int columns) {
  std::string piece = base::CutTo(text, columns);
  return piece.empty() ? base::CutTo(text, 2) : piece;
}

}  // namespace

std::vector<std::string> Broken(const std::string& text, int columns) {
  std::vector<std::string> pieces;
  std::string rest = text;
  do {
    pieces.push_back(Beginning(rest, columns));
    rest.erase(0, pieces.back().size());
  } while (!rest.empty());
  return pieces;
}

std::vector<std::string> Wrapped(const std::string& text, int columns) {
  columns = std::max(columns, 1);
  std::vector<std::string> lines;
  std::string rest = text;
  while (base::Columns(rest) > columns) {
    std::string line = Beginning(rest, columns);
    // The line may be broken at a blank just after it.
    std::size_t end = line.size();
    if (rest[end] != ' ') {
      const std::size_t blank = line.rfind(' ');
      if (blank != std::string::npos && blank > 0) end = blank;
    }
    line.resize(end);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
    const std::size_t next = rest.find_first_not_of(' ', end);
    rest = next == std::string::npos ? "" : rest.substr(next);
  }
  if (!rest.empty() || lines.empty()) lines.push_back(std::move(rest));
  return lines;
}

void Fit(Screen& screen, const ScreenSize& size) {
  const auto rows = static_cast<std::size_t>(std::max(size.rows, 0));
  if (screen.lines.size() > rows) screen.lines.resize(rows);
  for (ScreenLine& line : screen.lines) {
    int left = size.columns;
    for (Span& span : line) {
      span.text = base::CutTo(span.text, left);
      left -= base::Columns(span.text);
    }
  }
  if (screen.cursor && (screen.cursor->row >= size.rows || screen.cursor->column >= size.columns)) {
    screen.cursor.reset();
  }
}

}  // namespace muster::launcher
