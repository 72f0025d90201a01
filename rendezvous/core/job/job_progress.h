// The progress of the ranks of a job's current round.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Which ranks of a job are slower than the others, and in what phase.

// A change found in one rank by a look at all ranks.
struct StragglerChange {
  int rank = 0;
  // True: it has become a straggler; false: it no longer is one.
  bool begins = false;
  // Its own time for a step and the median's, in seconds.
  double own = 0;
  double median = 0;
  double slower = 0;  // as a share of the median
  // The phase that contributes most, its time and the median's. Set if it begins.
  std::string phase;
  double in_phase = 0;
  double median_in_phase = 0;
  // How long it was a straggler. Set if it ends.
  Duration lasted{};
};

// One sentence per change, "rank 3 on host b is a straggler, ...", and if there are many, one that
// counts the rest. `host_of` returns the host of a rank.
std::vector<Notice> ExplainAll(const std::vector<StragglerChange>& changes,
                               const std::function<const std::string&(int rank)>& host_of);

// A rank is a straggler when its own time of a step (OwnSeconds) is longer than the median rank's
// by more than the threshold, three times in a row that it reports new steps; it stops being one
// when it is slower by less than half the threshold as often. Ranks report medians, so no single
// step makes a straggler. Differences below 5 ms count as none.
//
// With an even number of ranks the median is the shorter of the two in the middle, so of two ranks
// it is the faster one. A rank that reports nothing new keeps its status.
//
// Deterministic; owned by JobProgress.
class Stragglers {
 public:
  // 0: no rank is ever a straggler.
  explicit Stragglers(double threshold) : threshold_(threshold) {}

  // The last report of each rank, by rank.
  using Ranks = std::map<int, RankProgress>;

  // Judges the ranks that have reported new steps since the last look.
  std::vector<StragglerChange> Look(const Ranks& ranks, TimePoint now);

  // nullopt: the rank is not a straggler.
  std::optional<Straggling> Find(int rank, TimePoint now) const;

  // Another round begins.
  void Clear() { judged_.clear(); }

 private:
  struct Judged {
    std::int64_t timed_steps = 0;    // as of the last judgement
    int against = 0;                 // consecutive looks that contradict its status
    std::optional<TimePoint> since;  // set while it is a straggler
    double slower = 0;
    std::string phase;
  };
  struct Medians;  // of all judged ranks

  std::optional<StragglerChange> Judge(int rank, const RankProgress& told, Medians& medians,
                                       TimePoint now);

  const double threshold_;
  std::map<int, Judged> judged_;
};

// The problems of a node's ranks, for the log: "says: rank 3 was stopped by SIGSTOP".
std::string FormatRankAlerts(const std::vector<RankAlertSnapshot>& alerts);

// Not in the journal: agents report everything again when they come back. Deterministic; owned by
// the Job, which maps ranks to nodes.
class JobProgress {
 public:
  // `threshold`: JobSettings::straggler_threshold.
  explicit JobProgress(double threshold) : stragglers_(threshold) {}

  // A report about the ranks of the node whose first rank is `first_rank` and which has `slots` of
  // them. Returns the ranks that have become stragglers or no longer are; all ranks are looked at
  // no more than twice a second.
  std::vector<StragglerChange> Hear(const std::vector<RankProgress>& ranks, int first_rank,
                                    int slots, TimePoint now);

  // The ranks of that node that have reported, in order.
  std::vector<RankSnapshot> Describe(int first_rank, int slots, TimePoint now) const;

  // All current problems of that node's ranks, as reported by its agent. Drops those of ranks it
  // does not have, and those beyond the limit. True: they differ from the last report.
  bool HearRankAlerts(std::vector<RankAlert> alerts, int first_rank, int slots, TimePoint now);

  // For the ranks of that node.
  std::vector<RankAlertSnapshot> DescribeRankAlerts(int first_rank, TimePoint now) const;

  // True if no rank has reported a step in this round.
  bool empty() const { return ranks_.empty(); }
  // The round is over; nothing is known about the next.
  void Clear();

 private:
  // Reports, with `ago` as received.
  Stragglers::Ranks ranks_;
  std::map<int, TimePoint> last_beats_;
  struct Alert {
    RankAlert told;
    TimePoint since;
  };
  std::map<int, std::vector<Alert>> alerts_;  // by the node's first rank
  Stragglers stragglers_;
  std::optional<TimePoint> looked_;
};

}  // namespace muster::rendezvous
