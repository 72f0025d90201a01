#include "rendezvous/core/job/job_progress.h"

#include <algorithm>
#include <chrono>

#include "rendezvous/core/limits.h"

namespace muster::rendezvous {
namespace {

// A look goes through all ranks of the job; agents tell once in a second.
constexpr Duration kLookPause = std::chrono::milliseconds(500);

}  // namespace

std::vector<StragglerChange> JobProgress::Hear(const std::vector<RankProgress>& ranks,
                                               int first_rank, int slots, TimePoint now) {
  const int most = std::min(slots, static_cast<int>(limits::kRanksToldOfNode.most));
  for (const RankProgress& told : ranks) {
    if (told.local_rank < 0 || told.local_rank >= most) continue;
    ranks_[first_rank + told.local_rank] = told;
    last_beats_[first_rank + told.local_rank] = now - std::max(told.ago, Duration::zero());
  }
  if (looked_ && now - *looked_ < kLookPause) return {};
  looked_ = now;
  return stragglers_.Look(ranks_, now);
}

std::vector<RankSnapshot> JobProgress::Describe(int first_rank, int slots, TimePoint now) const {
  std::vector<RankSnapshot> snapshots;
  for (auto at = ranks_.lower_bound(first_rank);
       at != ranks_.end() && at->first - first_rank < slots; ++at) {
    RankSnapshot& snapshot = snapshots.emplace_back(
        RankSnapshot{at->first, at->second, stragglers_.Find(at->first, now)});
    snapshot.told.ago = now - last_beats_.at(at->first);
  }
  return snapshots;
}

void JobProgress::Clear() {
  ranks_.clear();
  last_beats_.clear();
  stragglers_.Clear();
  looked_.reset();
}

}  // namespace muster::rendezvous
