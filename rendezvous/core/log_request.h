// What somebody asks of the output of a job's workers, and what he is told of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

enum class LogStream { kStdout, kStderr };

// From the first to the last, both included.
struct RankRange {
  int first = 0;
  int last = 0;

  bool operator==(const RankRange&) const = default;
};

// How far a stream of a rank was read.
struct LogPosition {
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  // The first byte that was not read; the stream's first byte has 0.
  std::uint64_t offset = 0;

  bool operator==(const LogPosition&) const = default;
};

// Which part of the ranks' output. Each stream has its own beginning by these.
struct LogExtent {
  bool with_stdout = true;
  bool with_stderr = true;
  // What was printed in this time; nullopt: all. A time that has passed, so that no clock of one
  // host is compared with another's.
  std::optional<Duration> since{};
  // The last lines; nullopt: all.
  std::optional<int> tail{};
  // What is printed from now on, too.
  bool follow = false;
  // These streams from here on, whatever `since` and `tail` say.
  std::vector<LogPosition> from{};

  bool operator==(const LogExtent&) const = default;
};

struct LogRequest {
  std::string run_id;
  // Empty: all of the round's.
  std::vector<RankRange> ranks{};
  // nullopt: the last that has started, or with `previous` the one before that.
  std::optional<RoundNumber> round{};
  bool previous = false;
  // With `follow` the rounds after that one as well, until the job ends.
  LogExtent extent{};
  // The reader has lost a daemon in `round` of this life of the job, and goes on where he was; if
  // that round is not known any more, with the first later one. 0: he begins.
  Incarnation incarnation = 0;

  bool operator==(const LogRequest&) const = default;
};

// Bytes of one stream of one rank, as it has printed them: not cut at lines, and not looked
// through for anything.
struct LogText {
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  std::string bytes;
  // Of the first of them in the stream; nullopt: its agent is older and does not say. Without
  // bytes: where the stream begins for this reader.
  std::optional<std::uint64_t> offset{};

  bool operator==(const LogText&) const = default;
};
// Something about the output that its reader should know: a sentence.
struct LogNotice {
  std::string sentence;
  // Something is missing.
  bool is_loss = false;

  bool operator==(const LogNotice&) const = default;
};
// What follows is of this round.
struct LogRound {
  RoundNumber round = 0;
  // Why the one before was over; empty: it is the first, or that is not known.
  std::string reason;
  // Of the job's life; 0: the daemon is older, and no reader can go on where he was.
  Incarnation incarnation = 0;

  bool operator==(const LogRound&) const = default;
};
using LogPart = std::variant<LogText, LogNotice, LogRound>;

}  // namespace muster::rendezvous
