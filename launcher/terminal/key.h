// What a user has pressed.
#pragma once

namespace muster::launcher {

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
  // A kCharacter's, of ASCII.
  char character = '\0';

  bool operator==(const Key&) const = default;
};

}  // namespace muster::launcher
