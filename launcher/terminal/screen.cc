#include "launcher/terminal/screen.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

namespace muster::launcher {
namespace {

bool BeginsCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// The character that begins there, and what of it there is.
char32_t CharacterAt(const std::string& text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  char32_t character = first < 0x80   ? first
                       : first < 0xE0 ? first & 0x1F
                       : first < 0xF0 ? first & 0x0F
                                      : first & 0x07;
  for (std::size_t i = at + 1; i < text.size() && !BeginsCharacter(text[i]); ++i) {
    character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  }
  return character;
}

struct Range {
  char32_t first;
  char32_t last;
};

bool IsIn(char32_t character, std::initializer_list<Range> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [character](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

// As terminals draw them (UAX #11, and what has no width): the ranges that are met, not all.
int WidthOf(char32_t character) {
  if (character < 0x300) return 1;
  if (IsIn(character, {{0x300, 0x36F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}})) {
    return 0;
  }
  const bool is_wide = IsIn(character, {{0x1100, 0x115F},
                                        {0x2E80, 0x303E},
                                        {0x3041, 0xA4CF},
                                        {0xAC00, 0xD7A3},
                                        {0xF900, 0xFAFF},
                                        {0xFE30, 0xFE6F},
                                        {0xFF00, 0xFF60},
                                        {0xFFE0, 0xFFE6},
                                        {0x1F300, 0x1F64F},
                                        {0x1F680, 0x1F6FF},
                                        {0x1F900, 0x1FAFF},
                                        {0x20000, 0x3FFFD}});
  return is_wide ? 2 : 1;
}

// That the character takes which begins there; none within one.
int ColumnsAt(const std::string& text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  // As most are.
  if (byte < 0x80) return 1;
  return BeginsCharacter(text[at]) ? WidthOf(CharacterAt(text, at)) : 0;
}

// At least one character, also where that does not fit.
std::string Beginning(const std::string& text, int columns) {
  std::string piece = CutTo(text, columns);
  return piece.empty() ? CutTo(text, 2) : piece;
}

}  // namespace

int Columns(const std::string& text) {
  int columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    columns += ColumnsAt(text, i);
  }
  return columns;
}

std::string CutTo(const std::string& text, int columns) {
  int seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    seen += ColumnsAt(text, i);
    if (seen > columns) return text.substr(0, i);
  }
  return text;
}

std::string PadTo(const std::string& text, int columns) {
  std::string padded = CutTo(text, columns);
  padded.append(static_cast<std::size_t>(std::max(columns - Columns(padded), 0)), ' ');
  return padded;
}

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
  while (Columns(rest) > columns) {
    std::string line = Beginning(rest, columns);
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
