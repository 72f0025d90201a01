// Cuts a stream of bytes into lines and puts a prefix before each, so that several streams can
// share a console without mixing within a line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::worker {

// A newline ends a line. So does a carriage return (progress bars print nothing else for an hour),
// which is shown as a newline, as under torchrun; "\r\n" counts as one end and an empty line that
// ends in a carriage return is dropped. A line longer than kMaxLine is given out in pieces,
// prefixed once.
class LinePrefixer {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // What is to be shown after `bytes` arrived: whole lines, possibly none. The rest is held back.
  std::string Feed(std::string_view bytes);

  // The unterminated last line, prefixed and with a newline added; empty when there is none.
  std::string Finish();

 private:
  void EndLine(char terminator, std::string* out);

  const std::string prefix_;
  // The line that is not complete, without its prefix and the pieces given out.
  std::string held_;
  // Pieces of it have been given out, its prefix before them.
  bool in_pieces_ = false;
  bool after_carriage_return_ = false;
};

}  // namespace muster::worker
