// How far the ranks of a job's current round have come.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/job/stragglers.h"
#include "rendezvous/core/progress.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// What is wrong with a node's ranks, for the log: "says: rank 3 was stopped by SIGSTOP".
std::string InWords(const std::vector<TroubleSnapshot>& troubles);

// No journal has it: agents tell all that they know when they come back. Deterministic; owned by
// the Job, which knows whose ranks are which.
class JobProgress {
 public:
  // `threshold`: JobSettings::straggler_threshold.
  explicit JobProgress(double threshold) : stragglers_(threshold) {}

  // The ranks of the node whose first rank is `first_rank`, and of which it has `slots`, tell. Who
  // has become a straggler by that, and who no longer is one: at most twice in a second it is
  // looked at all.
  std::vector<StragglerChange> Hear(const std::vector<RankProgress>& ranks, int first_rank,
                                    int slots, TimePoint now);

  // Of the ranks of that node that have told anything, in order.
  std::vector<RankSnapshot> Describe(int first_rank, int slots, TimePoint now) const;

  // All that is wrong with ranks of that node, as its agent says. What is of no rank of its is left
  // out, as is what is beyond the limit. True: it is not what was said before.
  bool HearTroubles(std::vector<RankTrouble> troubles, int first_rank, int slots, TimePoint now);

  // Of the ranks of that node.
  std::vector<TroubleSnapshot> DescribeTroubles(int first_rank, TimePoint now) const;

  // No rank has told of a step in this round.
  bool empty() const { return ranks_.empty(); }
  // The round is over, and nothing is known of the next.
  void Clear();

 private:
  // What was told, with `ago` as it was then.
  Stragglers::Ranks ranks_;
  std::map<int, TimePoint> last_beats_;
  struct Trouble {
    RankTrouble told;
    TimePoint since;
  };
  std::map<int, std::vector<Trouble>> troubles_;  // by the node's first rank
  Stragglers stragglers_;
  std::optional<TimePoint> looked_;
};

}  // namespace muster::rendezvous
