#include "base/text.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "base/safe_text.h"

namespace muster::base {

std::string Count(std::size_t n, const char* noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

std::string Seconds(std::chrono::nanoseconds duration) {
  const auto ms = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  if (ms < 1000) return absl::StrCat(ms, " ms");
  if (ms % 1000 == 0 || ms >= 10'000) return absl::StrCat((ms + 500) / 1000, " s");
  return absl::StrFormat("%.1f s", static_cast<double>(ms) / 1000);
}

std::string ExitPhrase(int exit_code, int signal) {
  return signal != 0 ? absl::StrCat("was killed by ", SignalName(signal))
                     : absl::StrCat("exited with code ", exit_code);
}

std::string ShortList(const std::vector<std::string>& items) {
  return ShortList(items, items.size());
}

std::string ShortList(const std::vector<std::string>& first, std::size_t count) {
  if (count <= kShown + 1) return absl::StrJoin(first, ", ");
  const std::vector<std::string> head(first.begin(), first.begin() + kShown);
  return absl::StrCat(absl::StrJoin(head, ", "), " and ", count - kShown, " more");
}

std::optional<int> ParseSignal(absl::string_view name) {
  absl::ConsumePrefix(&name, "SIG");
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return std::nullopt;
}

std::string SignalName(int signal) {
  // glibc names the standard signals; real-time signals are counted from SIGRTMIN, as `kill -l`
  // does.
  if (const char* name = ::sigabbrev_np(signal)) return absl::StrCat("SIG", name);
  if (signal == SIGRTMIN) return "SIGRTMIN";
  if (signal > SIGRTMIN && signal <= SIGRTMAX) {
    return absl::StrCat("SIGRTMIN+", signal - SIGRTMIN);
  }
  return absl::StrCat("signal ", signal);
}

std::string TextTable(std::vector<std::vector<std::string>> rows) {
  if (rows.empty()) return "";
  std::vector<int> widths(rows.front().size());
  for (std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = row[i].empty() ? "-" : SafeLine(row[i]);
      widths[i] = std::max(widths[i], Columns(row[i]));
    }
  }
  std::string table;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      absl::StrAppend(&table, is_last ? row[i] : PadTo(row[i], widths[i] + 2), is_last ? "\n" : "");
    }
  }
  return table;
}

namespace {

// Edit distance: how many letters must be inserted, removed, changed or swapped with a neighbour.
struct Distance {
  std::size_t whole;      // from `a` to all of `b`
  std::size_t beginning;  // from `a` to the nearest prefix of `b`
};

// Exact below `most`; larger distances are reported as `most` or more.
Distance DistanceTo(absl::string_view a, absl::string_view b, std::size_t most) {
  // The cost is the product of both lengths, and an argument may have 128 KiB.
  if (a.size() >= b.size() + most) return {most, most};
  std::vector<std::size_t> before(b.size() + 1);  // the row before `last`
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  std::size_t least = 0;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1);
    row[0] = least = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
      least = std::min(least, row[j]);
    }
    before = std::exchange(last, std::move(row));
  }
  return {.whole = last.back(), .beginning = least};
}

std::string Bare(absl::string_view word) {
  return absl::StrReplaceAll(absl::StripPrefix(absl::StripPrefix(word, "-"), "-"), {{"_", "-"}});
}

}  // namespace

absl::string_view NearestWord(absl::string_view word, const std::vector<absl::string_view>& words) {
  const std::string bare = Bare(word);
  if (bare.empty()) return "";
  absl::string_view nearest;
  absl::string_view nearest_beginning;
  // Limits for a match: a third of the letters wrong, or a sixth for a word that is cut short.
  std::size_t least = bare.size() / 3 + 1;
  std::size_t least_beginning = bare.size() / 6 + 1;
  for (const absl::string_view one : words) {
    const Distance distance = DistanceTo(bare, Bare(one), std::max(least, least_beginning));
    if (distance.whole < least) {
      least = distance.whole;
      nearest = one;
    }
    if (distance.beginning < least_beginning) {
      least_beginning = distance.beginning;
      nearest_beginning = one;
    }
  }
  return nearest.empty() ? nearest_beginning : nearest;
}

namespace {

// Returns the run of digits at *i without leading zeros, and moves *i past it.
std::string_view TakeNumber(std::string_view text, std::size_t* i) {
  while (*i < text.size() && text[*i] == '0') ++*i;
  const std::size_t start = *i;
  while (*i < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[*i]))) ++*i;
  return text.substr(start, *i - start);
}

}  // namespace

// A run of digits becomes '0', which sorts as a digit does, then its length, then the digits.
void AppendNatural(std::string_view text, std::string* key) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) {
      key->push_back(text[i++]);
      continue;
    }
    const std::string_view number = TakeNumber(text, &i);
    const std::size_t length = std::min<std::size_t>(number.size(), UINT16_MAX);
    key->append({'0', static_cast<char>(length >> 8), static_cast<char>(length & 0xff)});
    key->append(number);
  }
}

std::string RandomName(int length) {
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string name(static_cast<std::size_t>(length), '\0');
  // One call is enough: it fails only for more than 256 bytes.
  if (::getentropy(name.data(), name.size()) != 0) std::abort();
  // 256 is not a multiple of 36, so four characters are slightly more frequent. That is fine for a
  // name.
  for (char& c : name) c = kCharacters[static_cast<unsigned char>(c) % kCharacters.size()];
  return name;
}

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
