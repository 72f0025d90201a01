// The history of a job's rounds, for display.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/log_request.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

class Job;

// No decision depends on it. Keeps the last kMost rounds. Deterministic; owned by the Job.
//
// A round is productive from the start of its last worker until the event that ended it, as far as
// that is known, or else until it is over. Work since the workers' last checkpoint is lost as well,
// but is not reported here.
class JobHistory {
 public:
  static constexpr std::size_t kMost = 64;

  // The job and its round `round` exist from `now` on.
  JobHistory(RoundNumber round, TimePoint now) : begun_(now) { Open(round, now); }
  // Continues from what Describe returned, as if no time had passed since; Run must be called again
  // for a round that runs. If `told` is about another round than `round`, the history starts over.
  JobHistory(const HistorySnapshot& told, RoundNumber round, TimePoint now);

  // The current round's members have their ranks.
  RoundStarted Start(const std::vector<Placement>& members, TimePoint now);
  // A worker with that rank has failed in the round; negative: rank unknown. Only the first counts.
  void Fail(int rank) {
    if (rank >= 0 && !rounds_.back().failed_rank) rounds_.back().failed_rank = rank;
  }
  // All workers of the current round have started.
  RoundRuns Run(TimePoint now);
  // The round is over, and `next` opens. `detected`: how long ago the event happened that ended it;
  // nullopt: nothing has failed.
  RoundOver End(RoundEnd why, std::string reason, RoundNumber next,
                std::optional<Duration> detected, TimePoint now);
  // The job has a verdict, and its clock stops.
  void Finish(std::optional<Duration> detected, TimePoint now);

  // Whether the current round has started.
  bool started() const { return rounds_.back().started.has_value(); }
  // How long the current round has run, or has gathered if it has not started.
  Duration AgeOfRound(TimePoint now) const {
    return now - rounds_.back().started.value_or(rounds_.back().opened);
  }
  HistorySnapshot Describe(TimePoint now) const;

 private:
  struct Entry {
    RoundNumber number = 0;
    TimePoint opened;
    std::optional<TimePoint> started;
    std::optional<TimePoint> running;
    std::optional<TimePoint> over;
    int nodes = 0;
    int workers = 0;
    std::optional<int> failed_rank;
    RoundEnd why = RoundEnd::kWorkerFailed;
    std::string reason;
  };

  void Open(RoundNumber round, TimePoint now);
  // The time before the verdict in which rounds were productive.
  Duration Productive(TimePoint now) const;
  // How long the current round was productive, if it ends now.
  Duration CurrentlyProductive(std::optional<Duration> detected, TimePoint now) const;

  TimePoint begun_;
  bool any_started_ = false;
  Duration productive_{};                // in rounds that are over
  std::optional<TimePoint> down_since_;  // the end of the last round in which all workers ran
  std::optional<TimePoint> finished_;
  std::deque<Entry> rounds_;
};

// Which node ran which ranks of a job in its last rounds: its agent keeps their output.

// A node's place in a round that has started.
struct LogPlace {
  AttendeeId attendee = 0;
  std::string host;
  int first_rank = 0;
  int workers = 0;
  // Its agent can deliver their output (NodeInfo).
  bool delivers = false;
};

struct LogPlacesOfRound {
  RoundNumber round = kNoRound;
  // Why the round before was over; empty: this is the first.
  std::string reason;
  // In rank order.
  std::vector<LogPlace> places;
};

// The places of the round's members, in order of group rank; `attendees` are theirs, 0 where one
// has left.
LogPlacesOfRound PlacesOf(RoundNumber round, const std::string& reason,
                          const std::vector<Placement>& members,
                          const std::vector<AttendeeId>& attendees);

// No decision depends on it, and it is not in the journal, as with JobHistory: after a restart of
// the daemon only the current round is known. Deterministic; owned by the Job.
class LogPlaces {
 public:
  void Start(LogPlacesOfRound round) {
    rounds_.push_back(std::move(round));
    if (rounds_.size() > limits::kLogRounds.most) rounds_.pop_front();
  }

  // The known rounds, the latest last.
  const std::deque<LogPlacesOfRound>& rounds() const { return rounds_; }
  // The first later round; null: there is none yet.
  const LogPlacesOfRound* FindAfter(RoundNumber round) const {
    for (const LogPlacesOfRound& known : rounds_) {
      if (known.round > round) return &known;
    }
    return nullptr;
  }

 private:
  std::deque<LogPlacesOfRound> rounds_;
};

// Which rounds, ranks and streams of a job a log reader asked for.

// "rank 3", "ranks 0 to 7".
std::string RanksOf(const LogPlace& place);

// The place's ranks that are in `wanted`; all of them if that is empty.
std::vector<RankRange> WantedOf(const LogPlace& place, const std::vector<RankRange>& wanted);

// The positions whose rank is in `ranks`.
std::vector<LogPosition> PositionsIn(const std::vector<RankRange>& ranks,
                                     const std::vector<LogPosition>& all);

// Whether the reader lost a daemon and continues where it was.
bool ComesBack(const LogRequest& request);

// The round to read first, or an error that says why there is none; null: there is none yet.
absl::StatusOr<const LogPlacesOfRound*> FirstRound(const LogRequest& request, const Job& job);

// Whether the round has all the requested ranks.
absl::Status CheckRanks(const LogRequest& request, const LogPlacesOfRound& round);

}  // namespace muster::rendezvous
