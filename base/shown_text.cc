#include "base/shown_text.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "absl/strings/str_format.h"

#include "base/safe_text.h"
#include "base/text.h"

namespace muster::base {
namespace {

constexpr int kTabColumns = 8;

struct Columned {
  char32_t first;
  char32_t last;
};

// The width that terminals use (UAX #11), for the common ranges, not all.
constexpr Columned kWide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
};
// Other zero-width characters are not safe to show.
constexpr Columned kMarks[] = {{0x0300, 0x036F}, {0x20D0, 0x20FF}};

int WidthOf(char32_t code) {
  const auto has = [code](const Columned& range) {
    return range.first <= code && code <= range.last;
  };
  if (code < kMarks[0].first) return 1;
  if (std::any_of(std::begin(kMarks), std::end(kMarks), has)) return 0;
  return std::any_of(std::begin(kWide), std::end(kWide), has) ? 2 : 1;
}

// The length of a colour or erase-line sequence at the start of `text`; 0 if there is none.
std::size_t ColourSize(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", 2);
  const bool is_colour = end != text.npos && (text[end] == 'm' || text[end] == 'K');
  return is_colour ? end + 1 : 0;
}

// The number of bytes that fit into `columns`, which is set to the remaining columns.
std::size_t SizeOf(std::string_view text, int& columns) {
  std::size_t end = 0;
  while (end < text.size()) {
    const std::optional<Character> character = FirstCharacter(text.substr(end));
    const int width = character ? WidthOf(character->code) : 1;
    if (width > columns) break;
    columns -= width;
    end += character ? character->size : 1;
  }
  return end;
}

}  // namespace

std::string TerminalLine(std::string_view bytes) {
  bytes = bytes.substr(0, bytes.find_last_not_of('\r') + 1);
  bytes.remove_prefix(bytes.rfind('\r') + 1);
  std::string named;
  while (!bytes.empty()) {
    std::size_t size = ColourSize(bytes);
    if (size == 0) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      size = 1;
      if (byte == '\t') {
        named.append(static_cast<std::size_t>(kTabColumns - Columns(named) % kTabColumns), ' ');
      } else if (byte == '\n') {
        named += ' ';
      } else if (byte < 0x20 || byte == 0x7F) {
        named += {'^', static_cast<char>(byte ^ 0x40)};
      } else {
        named += bytes.front();
      }
    }
    bytes.remove_prefix(size);
  }
  return SafeText(named);
}

int Columns(std::string_view text) {
  constexpr int kMost = std::numeric_limits<int>::max();
  int left = kMost;
  SizeOf(text, left);
  return kMost - left;
}

std::string CutTo(std::string_view text, int columns) {
  return std::string(text.substr(0, SizeOf(text, columns)));
}

std::string PadTo(std::string_view text, int columns) {
  std::string padded(text.substr(0, SizeOf(text, columns)));
  return padded.append(static_cast<std::size_t>(std::max(columns, 0)), ' ');
}

std::string Elapsed(std::chrono::nanoseconds duration) {
  const auto s = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  if (s < 120) return Seconds(duration);
  if (s < 3600) return absl::StrFormat("%d min %02d s", s / 60, s % 60);
  if (s < 172'800) return absl::StrFormat("%d h %02d min", s / 3600, s / 60 % 60);
  return absl::StrFormat("%d d %02d h", s / 86'400, s / 3600 % 24);
}

std::string Measured(std::chrono::duration<double> duration) {
  const double s = duration.count();
  // The limit below which three digits do not round up to the next unit.
  if (s < 0.9995) return absl::StrFormat("%.3g ms", 1000 * s);
  if (s < 999.5) return absl::StrFormat("%.3g s", s);
  return Elapsed(std::chrono::duration_cast<std::chrono::nanoseconds>(duration));
}

}  // namespace muster::base
