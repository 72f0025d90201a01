// What is on a terminal, as a value.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::launcher {

struct Style {
  // Without colours all of them are plain: nothing may be said by a colour alone.
  enum class Tone { kPlain, kFaint, kGood, kBusy, kBad };
  Tone tone = Tone::kPlain;
  bool bold = false;
  // Light and dark change places.
  bool reverse = false;

  bool operator==(const Style&) const = default;
};

// Text of one style, in UTF-8 and without control characters.
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
  // From the top; what is missing is empty.
  std::vector<ScreenLine> lines;
  // What is chosen, which the cursor shows also where there is no reverse; nullopt: no cursor.
  std::optional<ScreenPlace> cursor;
};

// How many columns a text takes: none for marks that stand over another character, two for
// characters of East Asia and for most pictures.
int Columns(const std::string& text);
// As much of its beginning as takes `columns` at most.
std::string CutTo(const std::string& text, int columns);
// Cut, or with blanks at its end, so that it takes `columns`.
std::string PadTo(const std::string& text, int columns);
// In pieces that take `columns` each, as nearly as characters allow; the last may take fewer.
std::vector<std::string> Broken(const std::string& text, int columns);
// Its words in lines of at most `columns`, each; a word that is longer is cut into several.
std::vector<std::string> Wrapped(const std::string& text, int columns);

// Cuts every line, and those below the last row.
void Fit(Screen& screen, const ScreenSize& size);

}  // namespace muster::launcher
