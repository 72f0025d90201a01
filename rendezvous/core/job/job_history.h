// What has become of a job's rounds, for those who look.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/milestone.h"
#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Nothing is decided by it. Keeps the last kMost rounds. Deterministic; owned by the Job.
//
// A round is productive from when all its workers have started until what ended it happened, as far
// as that is known, or else until it is over. What its workers have done since they last saved is
// lost nonetheless: that nobody tells here.
class JobHistory {
 public:
  static constexpr std::size_t kMost = 64;

  // The job is there from `now` on, and so is its round `round`.
  JobHistory(RoundNumber round, TimePoint now) : begun_(now) { Open(round, now); }
  // What Describe told, as if no time had passed since; a round that runs is to be told by Run
  // again. Where that is of another round than `round`
  // the history begins anew.
  JobHistory(const HistorySnapshot& told, RoundNumber round, TimePoint now);

  // The current round's members have their ranks.
  RoundStarted Start(const std::vector<Placement>& members, TimePoint now);
  // A worker with that rank has failed in it; negative: which one is not known. The first counts.
  void Fail(int rank);
  // All workers of the current round have started.
  RoundRuns Run(TimePoint now);
  // It is over, and `next` opens. What ended it happened so long ago; nullopt: nothing has failed.
  RoundOver End(RoundEnd why, std::string reason, RoundNumber next,
                std::optional<Duration> detected, TimePoint now);
  // The job has a verdict, and no time passes for it any more.
  void Finish(std::optional<Duration> detected, TimePoint now);

  // Whether the current round has started.
  bool started() const { return rounds_.back().started.has_value(); }
  // How long the current round has run; before it has started: how long it has gathered.
  Duration AgeOfRound(TimePoint now) const;
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
  // The part of the job's time, until its verdict, in which rounds were productive.
  Duration Productive(TimePoint now) const;
  // How long the current round was productive, if it ends now.
  Duration CurrentlyProductive(std::optional<Duration> detected, TimePoint now) const;

  TimePoint begun_;
  bool any_started_ = false;
  Duration productive_{};                // of the rounds that are over
  std::optional<TimePoint> down_since_;  // the last round that ran in full was over
  std::optional<TimePoint> finished_;
  std::deque<Entry> rounds_;
};

}  // namespace muster::rendezvous
