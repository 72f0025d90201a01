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

  bool operator==(const LogRequest&) const = default;
};

// Bytes of one stream of one rank, as it has printed them: not cut at lines, and not looked
// through for anything.
struct LogText {
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  std::string bytes;

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

  bool operator==(const LogRound&) const = default;
};
using LogPart = std::variant<LogText, LogNotice, LogRound>;

}  // namespace muster::rendezvous
