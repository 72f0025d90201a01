// The last output lines of one rank in `muster top`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "launcher/top/screen.h"
#include "rendezvous/core/values/log_request.h"

namespace muster::launcher {

struct LogLine {
  enum class Source {
    kStdout,
    kStderr,
    // A sentence of Muster about the output.
    kMuster,
  };
  Source source = Source::kStdout;
  // UTF-8 without control characters.
  std::string text;

  bool operator==(const LogLine&) const = default;
};

// A value that the functions below update. At most a few megabytes, regardless of how much the rank
// prints.
struct RankLog {
  // The number of lines kept.
  static constexpr std::size_t kMostLines = 1000;
  // A longer line is split.
  static constexpr std::size_t kMostLineBytes = 4096;

  std::string run_id;
  int rank = 0;
  // The output is that of the round before the last started one; otherwise that of the last one and
  // all that follow.
  bool of_round_before = false;

  std::deque<LogLine> lines;
  // How many lines before the first one were dropped.
  std::int64_t gone = 0;
  // An incomplete line, of stdout and of stderr.
  struct Begun {
    std::string bytes;
    // The last byte was a carriage return: the next one overwrites the line.
    bool has_returned = false;
  };
  std::array<Begun, 2> begun;

  enum class End {
    kNotYet,
    kAllTold,
    // Asking again does not help, unless the job changes.
    kFailed,
    // The connection broke.
    kCutOff,
  };
  End end = End::kNotYet;
};

// The request for this output.
rendezvous::LogRequest RequestFor(const RankLog& log);

void OnLogPart(RankLog& log, const rendezvous::LogPart& part);
// The daemon is unreachable, for reason `why`; the output continues once it is reachable. Adds a
// line.
void OnLogOutage(RankLog& log, const std::string& why);
// The output is complete (LogFollower::Handlers::on_end); adds a last line that says why.
void OnLogEnd(RankLog& log, const absl::Status& status);

// The lines, followed by the incomplete ones.
std::vector<LogLine> LinesOf(const RankLog& log);

// What a rank prints, in rows of a screen.

// A row that stays the same when more is printed: the number of a line, counted from the first
// ever, and the piece of it.
struct LogPlace {
  std::int64_t line = 0;
  int piece = 0;

  bool operator==(const LogPlace&) const = default;
};

struct LogPane {
  std::vector<ScreenLine> rows;
  // Which part is visible, and how to scroll.
  std::string note;
};

// The rows that fit, from `top` on; nullopt: the last ones. Breaks long lines. Lines of stderr
// begin with "2> ", those of Muster with "-- ".
LogPane DrawLog(const RankLog& log, const std::optional<LogPlace>& top, const ScreenSize& room);

// The place `by` rows below (negative: above) `top`; nullopt if the last rows are then visible.
std::optional<LogPlace> Scrolled(const RankLog& log, const std::optional<LogPlace>& top,
                                 const ScreenSize& room, int by);

}  // namespace muster::launcher
