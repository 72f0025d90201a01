// Bytes put together to the characters of UTF-8.
#pragma once

#include <cstddef>
#include <string>

namespace muster::trainer {

// Holds bytes back until they can be shown: a terminal that gets half a character shows a mark of
// its own for it. Every byte that goes in comes out, in order, also those that are no UTF-8. One
// thread.
class Utf8Assembler {
 public:
  // Takes the next byte. Returns what need not wait any longer: whole characters, and bytes that no
  // character begins with or that were left without their rest; else nothing.
  std::string Add(char byte);

  // What is held back, at the end of the text.
  std::string Finish();

 private:
  std::string held_;        // the first bytes of a character
  std::size_t length_ = 0;  // of that character
};

}  // namespace muster::trainer
