// Makes text from elsewhere, such as names that users chose or program output, safe to show: it
// cannot control the terminal or look like something that it is not.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster::base {

struct Character {
  char32_t code = 0;     // the Unicode code point
  std::size_t size = 0;  // in bytes
};

// The first character of `text`, which must not be empty. nullopt if it is not UTF-8 (RFC 3629: no
// overlong form, no surrogate, nothing above U+10FFFF).
std::optional<Character> FirstCharacter(std::string_view text);

// Whether a terminal acts on it: U+0000 to U+001F and U+007F to U+009F.
bool IsControl(char32_t code);

// Whether the character is visible and in its place. These are not: control characters, including
// line feed and tab; line and paragraph separators; characters that change the direction of the
// following text (U+202E and the other bidirectional controls, UAX #9); and characters without a
// shape, such as zero-width space and soft hyphen (Default_Ignorable_Code_Point), with which two
// different names look the same.
bool IsSeen(char32_t code);

inline constexpr std::size_t kWholeText = std::string_view::npos;

// `text` cut to `limit` bytes, with '?' for each character that is not IsSeen (line feeds and tabs
// are kept) and for each byte that is not UTF-8. The result is valid UTF-8 and ends with a whole
// character.
std::string SafeText(std::string_view text, std::size_t limit = kWholeText);

// The same on one line: line feeds and tabs become spaces.
std::string SafeLine(std::string_view text, std::size_t limit = kWholeText);

// The same for JSON, without losing anything: characters that are not IsSeen are escaped (\u202e),
// which JSON allows wherever they may occur. Line feeds and bytes that are not UTF-8 are kept.
std::string SafeJson(std::string_view json);

// Turns a name that a user chose into part of a file name.

// `name` with '/', '%' and NUL as '%' and two hexadecimal digits, cut to `limit` bytes without
// splitting an escape or a UTF-8 character. Everything else is kept, so that people recognize the
// name. The result may begin with a dot or be "..": append something to it.
std::string FileNameOf(std::string_view name, std::size_t limit);

}  // namespace muster::base
