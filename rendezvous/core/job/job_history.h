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
class JobHistory {
 public:
  static constexpr std::size_t kMost = 64;

  // The job is there from `now` on, and so is its round `round`.
  JobHistory(RoundNumber round, TimePoint now) : begun_(now) { Open(round, now); }
  // What Describe told, as if no time had passed since. Where that is of another round than `round`
  // the history begins anew.
  JobHistory(const HistorySnapshot& told, RoundNumber round, TimePoint now);

  // The current round's members have their ranks.
  RoundStarted Start(const std::vector<Placement>& members, TimePoint now);
  // It is over, and `next` opens.
  RoundOver End(RoundEnd why, std::string reason, RoundNumber next, TimePoint now);

  // The job has its verdict, and its time is over.
  void Finish(TimePoint now) { finished_ = now; }

  // Whether the current round has started.
  bool started() const { return rounds_.back().started.has_value(); }
  HistorySnapshot Describe(TimePoint now) const;

 private:
  struct Entry {
    RoundNumber number = 0;
    TimePoint opened;
    std::optional<TimePoint> started;
    std::optional<TimePoint> over;
    int nodes = 0;
    int workers = 0;
    RoundEnd why = RoundEnd::kWorkerFailed;
    std::string reason;
  };

  void Open(RoundNumber round, TimePoint now);

  TimePoint begun_;
  std::optional<TimePoint> finished_;
  bool any_started_ = false;
  std::deque<Entry> rounds_;
};

}  // namespace muster::rendezvous
