// The contents of a terminal as a value.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::launcher {

struct Style {
  // Without colours all tones look plain: never express anything by a tone alone.
  enum class Tone { kPlain, kFaint, kGood, kBusy, kBad };
  Tone tone = Tone::kPlain;
  bool bold = false;
  // Swaps foreground and background.
  bool reverse = false;

  bool operator==(const Style&) const = default;
};

// Text of one style. Unsafe characters (base/safe_text.h) are drawn as '?'.
struct Span {
  std::string text;
  Style style{};

  bool operator==(const Span&) const = default;
};

using ScreenLine = std::vector<Span>;

struct ScreenSize {
  int columns = 80;
  int rows = 24;

  bool operator==(const ScreenSize&) const = default;
};

// The upper left corner is 0, 0.
struct ScreenPlace {
  int row = 0;
  int column = 0;

  bool operator==(const ScreenPlace&) const = default;
};

struct Screen {
  // From the top; missing lines are empty.
  std::vector<ScreenLine> lines;
  // The selection, which the cursor marks even on terminals without reverse; nullopt: no cursor.
  std::optional<ScreenPlace> cursor;
};

// In pieces that take `columns` each, as nearly as characters allow; the last may take fewer.
std::vector<std::string> Broken(const std::string& text, int columns);
// Wraps words into lines of at most `columns`; a longer word is split.
std::vector<std::string> Wrapped(const std::string& text, int columns);

// Cuts long lines, and drops those below the last row.
void Fit(Screen& screen, const ScreenSize& size);

// A key press.

struct Key {
  enum class Kind {
    kCharacter,
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kTab,
    kEscape,
    kOther,
  };
  Kind kind = Kind::kOther;
  // For kCharacter: ASCII.
  char character = '\0';

  bool operator==(const Key&) const = default;
};

}  // namespace muster::launcher
