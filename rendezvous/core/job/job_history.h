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

// Nothing is decided by it, and no journal has it: a daemon that was started again knows of the
// rounds since then. Keeps the last kMost rounds. Deterministic; owned by the Job.
class JobHistory {
 public:
  static constexpr std::size_t kMost = 64;

  // The job is there from `now` on, and so is its round `round`.
  JobHistory(RoundNumber round, TimePoint now) : begun_(now) { Open(round, now); }

  // The current round's members have their ranks.
  RoundStarted Start(const std::vector<Placement>& members, TimePoint now);
  // It is over, and `next` opens.
  RoundOver End(RoundEnd why, std::string reason, RoundNumber next, TimePoint now);

  Duration Age(TimePoint now) const { return now - begun_; }
  // In order of their numbers; the last is the current one.
  std::vector<RoundSnapshot> Describe(TimePoint now) const;

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

  const TimePoint begun_;
  bool any_started_ = false;
  std::deque<Entry> rounds_;
};

}  // namespace muster::rendezvous
