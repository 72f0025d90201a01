// What a reader requests of the output of a job's workers, and what it receives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

enum class LogStream { kStdout, kStderr };

// Both ends included.
struct RankRange {
  int first = 0;
  int last = 0;

  bool operator==(const RankRange&) const = default;
};

// How far a stream of a rank has been read.
struct LogPosition {
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  // The first unread byte; the stream starts at 0.
  std::uint64_t offset = 0;

  bool operator==(const LogPosition&) const = default;
};

// Which part of the ranks' output. Applies to each stream separately.
struct LogExtent {
  bool with_stdout = true;
  bool with_stderr = true;
  // Only what was printed in this period up to now; nullopt: all. A period, not a time, so that no
  // clock of one host is compared with another's.
  std::optional<Duration> since{};
  // Only this many last lines; nullopt: all.
  std::optional<int> tail{};
  // Also what is printed from now on.
  bool follow = false;
  // These streams start here, whatever `since` and `tail` say.
  std::vector<LogPosition> from{};

  bool operator==(const LogExtent&) const = default;
};

struct LogRequest {
  std::string run_id;
  // Empty: all ranks of the round.
  std::vector<RankRange> ranks{};
  // nullopt: the last round that has started, or with `previous` the one before it.
  std::optional<RoundNumber> round{};
  bool previous = false;
  // With `follow` also the rounds after that one, until the job ends.
  LogExtent extent{};
  // The reader lost its daemon in `round` of this life of the job, and continues where it was; if
  // that round is no longer known, with the first later one. 0: it starts from the beginning.
  Incarnation incarnation = 0;

  bool operator==(const LogRequest&) const = default;
};

// Bytes of one stream of one rank, as printed: not cut at lines, and not inspected.
struct LogText {
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  std::string bytes;
  // Offset of the first byte in the stream; nullopt: an older agent does not send it. Without
  // bytes: where the stream begins for this reader.
  std::optional<std::uint64_t> offset{};

  bool operator==(const LogText&) const = default;
};
// A sentence that the reader of the output should know.
struct LogNotice {
  std::string sentence;
  // Some output is missing.
  bool is_loss = false;

  bool operator==(const LogNotice&) const = default;
};
// What follows belongs to this round.
struct LogRound {
  RoundNumber round = 0;
  // Why the round before was over; empty: this is the first, or the reason is unknown.
  std::string reason;
  // The life of the job; 0: the daemon is older, and readers cannot continue where they were.
  Incarnation incarnation = 0;

  bool operator==(const LogRound&) const = default;
};
using LogPart = std::variant<LogText, LogNotice, LogRound>;

// How far a log reader has come, and what it requests after it has lost its daemon. A value: the
// current round, and for each of its streams the first byte not yet received.
class ReadSoFar {
 public:
  explicit ReadSoFar(LogRequest request) : request_(std::move(request)) {}

  // Records a received part. False: the reader had it already, from before it lost its daemon.
  bool Take(const LogPart& part) {
    return std::visit([this](const auto& kind) { return Hear(kind); }, part);
  }

  // Whether another daemon can be asked for exactly the rest: this daemon and the agents are new
  // enough to send positions, and a round has begun.
  bool can_go_on() const { return incarnation_ != 0 && has_offsets_ && !is_too_much_; }

  // The next request; `passed`: the time since the first one.
  LogRequest Rest(Duration passed) const;

  // A notice reported that something was missing.
  bool is_incomplete() const { return is_incomplete_; }

 private:
  bool Hear(const LogText& text);
  bool Hear(const LogNotice& notice);
  bool Hear(const LogRound& round);

  // The first request; of later rounds everything is wanted.
  LogRequest request_;
  std::optional<RoundNumber> round_;
  Incarnation incarnation_ = 0;
  std::map<std::pair<int, LogStream>, std::uint64_t> next_;
  // Notices of this round: each agent that is asked again repeats them.
  std::set<std::string> said_;
  bool has_offsets_ = true;
  bool is_too_much_ = false;
  bool is_incomplete_ = false;
};

}  // namespace muster::rendezvous
