// Cuts a stream of bytes into lines and puts a prefix before each, so that several streams can
// share a console without mixing within a line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "worker/output/line_prefix.h"

namespace muster::worker {

// What a carriage return means; progress bars print nothing else for an hour. "\r\n" is one line
// end either way.
enum class CarriageReturn {
  // It ends a line as a newline does, and is shown as one, as under torchrun; an empty line that
  // ends in one is dropped. For files and pipes.
  kEndsLine,
  // The next bytes rewrite the line from its start: only a newline ends it, and its content then is
  // the line. Meanwhile Rewritten() tells what it looks like. For terminals.
  kRewritesLine,
};

// A newline ends a line. A line longer than kMaxLine is output in pieces, prefixed once.
class LinePrefixer {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;
  using Time = LinePrefix::Time;

  explicit LinePrefixer(LinePrefix prefix,
                        CarriageReturn carriage_return = CarriageReturn::kEndsLine)
      : prefix_(std::move(prefix)), carriage_return_(carriage_return) {}

  // Only lines that contain one of these, not counting the prefix, are shown; of an endless line
  // only the first kMaxLine bytes are searched.
  void ShowOnly(std::vector<std::string> filters) { filters_ = std::move(filters); }

  // What to show after `bytes` have arrived at `now`: whole lines, possibly none. The rest is held
  // back.
  std::string Feed(std::string_view bytes, Time now);

  // The unfinished line, prefixed and without a newline, if it is one that is being rewritten; else
  // empty.
  std::string Rewritten(Time now) const;

  // The unterminated last line, prefixed and with a newline added; empty when there is none.
  std::string Finish(Time now);

 private:
  struct Output;
  void EndLine(std::string_view end_of_line, Output* out);
  void ReturnCarriage(std::string_view end_of_line, Output* out);
  void GiveOutPiece(Output* out);
  bool IsWanted(std::string_view line) const;

  const LinePrefix prefix_;
  const CarriageReturn carriage_return_;
  std::vector<std::string> filters_;
  // The incomplete line, without its prefix and the pieces already output; where lines are
  // rewritten, since the last carriage return.
  std::string held_;
  // The content of a line being rewritten before that carriage return.
  std::string rewritten_;
  bool rewriting_ = false;
  // Whether pieces of the line, beginning with its prefix, have been output, or would have been if
  // the line were wanted.
  enum class Pieces { kNone, kShown, kHidden } pieces_ = Pieces::kNone;
  bool after_carriage_return_ = false;
};

}  // namespace muster::worker
