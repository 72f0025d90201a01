#include "launcher/terminal/screen.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace muster::launcher {
namespace {

bool BeginsCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

}  // namespace

int Columns(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::string CutTo(const std::string& text, int columns) {
  int seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (BeginsCharacter(text[i]) && ++seen > columns) return text.substr(0, i);
  }
  return text;
}

std::string PadTo(const std::string& text, int columns) {
  std::string padded = CutTo(text, columns);
  padded.append(static_cast<std::size_t>(std::max(columns - Columns(padded), 0)), ' ');
  return padded;
}

std::vector<std::string> Wrapped(const std::string& text, int columns) {
  columns = std::max(columns, 1);
  std::vector<std::string> lines;
  std::string rest = text;
  while (Columns(rest) > columns) {
    std::string line = CutTo(rest, columns);
    // The blank at which it is broken may be the first of what follows.
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
      span.text = CutTo(span.text, left);
      left -= Columns(span.text);
    }
  }
  if (screen.cursor && (screen.cursor->row >= size.rows || screen.cursor->column >= size.columns)) {
    screen.cursor.reset();
  }
}

}  // namespace muster::launcher
