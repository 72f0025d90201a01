// Which ranks of a job are slower than the others, and in what.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/progress.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// What has become known of a rank by a look at all.
struct StragglerChange {
  int rank = 0;
  // It has become a straggler; else it no longer is one.
  bool begins = false;
  // Its own time of a step and the median's, in seconds.
  double own = 0;
  double median = 0;
  double slower = 0;  // by which share
  // The phase that adds most to the difference, its time and the median's. For one that begins.
  std::string phase;
  double in_phase = 0;
  double median_in_phase = 0;
  // How long it was one. For one that ends.
  Duration lasted{};
};

// One sentence about each, "rank 3 on host b is a straggler, ...", and if there are many, one about
// those that are left out. `host_of` says where a rank runs.
std::vector<Notice> ExplainAll(const std::vector<StragglerChange>& changes,
                               const std::function<const std::string&(int rank)>& host_of);

// A rank is a straggler when its own time of a step (OwnSeconds) is longer than the median rank's
// by more than the threshold, three times in a row that it tells of new steps; and no longer, when
// it is longer by less than half of that as often. As what ranks tell are medians themselves, no
// single step makes a straggler. Differences below 5 ms count as none.
//
// With an even number of ranks the median is the shorter of the two in the middle, so of two ranks
// it is the faster one. A rank that tells nothing new stays what it is.
//
// Deterministic; owned by JobProgress.
class Stragglers {
 public:
  // 0: there are none.
  explicit Stragglers(double threshold) : threshold_(threshold) {}

  // What a look goes by: of each rank, by number, what it has told last.
  using Ranks = std::map<int, RankProgress>;

  // Judges the ranks that have told of new steps since the last look.
  std::vector<StragglerChange> Look(const Ranks& ranks, TimePoint now);

  // nullopt: the rank is none.
  std::optional<Straggling> Find(int rank, TimePoint now) const;

  // Another round begins.
  void Clear() { judged_.clear(); }

 private:
  struct Judged {
    std::int64_t timed_steps = 0;    // when it was judged last
    int against = 0;                 // looks in a row that contradict what it counts as
    std::optional<TimePoint> since;  // it is a straggler
    double slower = 0;
    std::string phase;
  };
  struct Medians;  // of all ranks that are judged

  std::optional<StragglerChange> Judge(int rank, const RankProgress& told, Medians& medians,
                                       TimePoint now);

  const double threshold_;
  std::map<int, Judged> judged_;
};

}  // namespace muster::rendezvous
