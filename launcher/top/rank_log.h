// What one rank prints, as `muster top` has it: its last lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rendezvous/core/log_request.h"

namespace muster::launcher {

struct LogLine {
  enum class Source {
    kStdout,
    kStderr,
    // A sentence about the output, of Muster's.
    kMuster,
  };
  Source source = Source::kStdout;
  // In UTF-8 and without control characters.
  std::string text;

  bool operator==(const LogLine&) const = default;
};

// A value: what comes changes it, by the functions below. It takes a few megabytes at most, however
// much the rank prints.
struct RankLog {
  // Of all that was printed the last lines.
  static constexpr std::size_t kMostLines = 1000;
  // A longer line is several.
  static constexpr std::size_t kMostLineBytes = 4096;

  std::string run_id;
  int rank = 0;
  // Of the round before the last that has started; else of that one and of those that follow it.
  bool of_round_before = false;

  std::deque<LogLine> lines;
  // So many were there before the first of them, and are not kept.
  std::int64_t gone = 0;
  // Begun and not ended, of stdout and of stderr.
  struct Begun {
    std::string bytes;
    // A carriage return was the last: what comes takes the place of what is there.
    bool has_returned = false;
  };
  std::array<Begun, 2> begun;

  enum class End {
    kNotYet,
    kAllTold,
    // It would not help to ask again, unless the job has changed.
    kFailed,
    // With the connection.
    kCutOff,
  };
  End end = End::kNotYet;
};

// What is asked of the rendezvous for it.
rendezvous::LogRequest RequestFor(const RankLog& log);

void OnLogPart(RankLog& log, const rendezvous::LogPart& part);
// The daemon cannot be reached, for the reason given, and what comes goes on where it was once one
// is there; a line says so.
void OnLogOutage(RankLog& log, const std::string& why);
// Nothing more comes (LogFollower::Handlers::on_end); the last line says why.
void OnLogEnd(RankLog& log, const absl::Status& status);

// The lines, and behind them what has been begun.
std::vector<LogLine> LinesOf(const RankLog& log);

// What a worker has printed, for a terminal: colours are left out, tabs are blanks, other control
// characters are named as ^X, and bytes that are no UTF-8, or that turn the direction of the text,
// are question marks.
std::string ShowableLine(const std::string& bytes);

}  // namespace muster::launcher
