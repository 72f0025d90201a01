// The prefix of a worker's output lines.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

class LinePrefix {
 public:
  using Time = std::chrono::system_clock::time_point;

  // `text` as in OutputSpec::prefix: ${pid} becomes `pid`, ${time} is filled in per line, other
  // dollar signs are kept.
  LinePrefix(const std::string& text, pid_t pid);

  // The prefix of a line that ended at `now`.
  std::string At(Time now) const;

 private:
  std::string text_;
  // Whether the prefix contains ${time}.
  bool has_time_ = false;
};

// Local time as "15:04:05.123".
std::string ClockTime(LinePrefix::Time time);

// Splits a byte stream into lines with a prefix each, so that streams can share a console without
// mixing within a line.

// The meaning of a carriage return; progress bars may print nothing else for an hour. "\r\n" is one
// line end either way.
enum class CarriageReturn {
  // Ends a line as a newline does, and is output as one, as under torchrun; an empty line that ends
  // in it is dropped. For files and pipes.
  kEndsLine,
  // The next bytes rewrite the line from its start; a newline outputs its latest content. Until
  // then Rewritten() returns that content. For terminals.
  kRewritesLine,
};

// A line ends with a newline. A line longer than kMaxLine is output in pieces, with one prefix.
class LinePrefixer {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;
  using Time = LinePrefix::Time;

  explicit LinePrefixer(LinePrefix prefix,
                        CarriageReturn carriage_return = CarriageReturn::kEndsLine)
      : prefix_(std::move(prefix)), carriage_return_(carriage_return) {}

  // Shows only lines that contain one of these, not counting the prefix. Only the first kMaxLine
  // bytes of a line are searched.
  void ShowOnly(std::vector<std::string> filters) { filters_ = std::move(filters); }

  // What to output after `bytes` arrived at `now`: complete lines, if any. The rest is held back.
  std::string Feed(std::string_view bytes, Time now);

  // The line that is being rewritten, with its prefix and no newline; empty if none is.
  std::string Rewritten(Time now) const;

  // Whether an incomplete line is held back that is neither being rewritten nor output in pieces.
  bool holds_back() const {
    return !held_.empty() && !rewriting_ && pieces_ == Pieces::kNone && filters_.empty();
  }
  // That part, with its prefix and no newline. The complete line is still output later, with this
  // prefix.
  std::string Part(Time now);

  // The incomplete last line, with its prefix and a newline; empty if there is none.
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
  // The incomplete line without its prefix and the pieces already output; if lines are rewritten,
  // what followed the last carriage return.
  std::string held_;
  // The content of a rewritten line before that carriage return.
  std::string rewritten_;
  bool rewriting_ = false;
  // Whether pieces of the line were output, with its prefix, or were hidden by the filters.
  enum class Pieces { kNone, kShown, kHidden } pieces_ = Pieces::kNone;
  bool after_carriage_return_ = false;
  // The prefix with which part of the line was shown; empty: none was.
  std::string shown_prefix_;
};

// A console's last line while it is incomplete: a progress bar that is rewritten in place, or a
// line such as a prompt whose end has not come.
//
// Several writers share the terminal. While one of them rewrites its line and no other writes, the
// bar stays one line. When another writes, the bar in its current form becomes a line of its own,
// and its writer continues below. So two bars that alternate become lines, as they would on a
// console that is not a terminal, and never mix.
//
// A line without an end is never erased, only continued. If another writer writes in between, what
// is there becomes a line of its own, and its writer starts again with the whole line.

// Computes the bytes for the console, and remembers its incomplete line. Uses only '\r' and spaces,
// which every terminal supports, and only if something is rewritten. Writers are identified by an
// address of their choice; nullptr is a writer without incomplete lines.
class RewrittenLine {
 public:
  // The bytes that show `line` in place of the writer's bar, or as a new one. Cuts the line to
  // `columns` (0: unknown), as wrapped text cannot be erased.
  std::string Rewrite(const void* writer, std::string_view line, int columns);

  // The bytes that show `line`, which is incomplete, without cutting it: only what is new if the
  // writer's line is already shown.
  std::string Show(const void* writer, std::string_view line);

  // The bytes to write before `text`, `writer`'s next output: erases the writer's own bar, or ends
  // another writer's as a line. Removes from `text` what is already shown.
  std::string Leave(const void* writer, std::string_view& text);

 private:
  // The writer of the incomplete line; nullptr: none.
  const void* writer_ = nullptr;
  // Its width in columns.
  std::size_t width_ = 0;
  // The line, unless it is a bar.
  std::string line_;
};

// The columns that `text` takes: one per UTF-8 character, none for escape sequences.
std::size_t VisibleWidth(std::string_view text);

// The part of `text` that fits into `columns`, with all of its escape sequences.
std::string CutToWidth(std::string_view text, std::size_t columns);

// The last bytes of a stream, for failure reports.

inline constexpr std::size_t kMaxTail = 8 * 1024;

class TailBuffer {
 public:
  explicit TailBuffer(std::size_t limit = kMaxTail) : limit_(limit) {}

  void Append(std::string_view bytes);

  // The tail of everything appended, as TailOf() cuts it.
  std::string Text() const;

 private:
  const std::size_t limit_;
  // At least the last limit_ + 1 bytes and at most twice as many, so that most appends move
  // nothing.
  std::string bytes_;
};

// The last `limit` bytes of `bytes`, starting with a whole line unless there is only one. Needs one
// byte more than `limit` to see whether a line was cut.
std::string TailOf(std::string_view bytes, std::size_t limit);

}  // namespace muster::worker
