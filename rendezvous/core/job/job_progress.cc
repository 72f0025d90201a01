#include "rendezvous/core/job/job_progress.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/limits.h"

namespace muster::rendezvous {
namespace {

// A look goes through all ranks of the job; agents tell once in a second.
constexpr Duration kLookPause = std::chrono::milliseconds(500);
// That are said at once; all ranks of a node lose output when its disk is full.
constexpr std::size_t kMostInWords = 4;

}  // namespace

std::string InWords(const std::vector<TroubleSnapshot>& troubles) {
  if (troubles.empty()) return "says that nothing is wrong with its ranks any more";
  std::string words = "says:";
  for (std::size_t i = 0; i < std::min(troubles.size(), kMostInWords); ++i) {
    absl::StrAppend(&words, i == 0 ? " rank " : "; rank ", troubles[i].rank, " ",
                    troubles[i].told.what);
  }
  if (troubles.size() > kMostInWords) {
    absl::StrAppend(&words, "; and ", troubles.size() - kMostInWords, " more");
  }
  return words;
}

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

bool JobProgress::HearTroubles(std::vector<RankTrouble> troubles, int first_rank, int slots,
                               TimePoint now) {
  const int most = std::min(slots, static_cast<int>(limits::kRanksToldOfNode.most));
  std::erase_if(troubles, [most](const RankTrouble& told) {
    return told.local_rank < 0 || told.local_rank >= most;
  });
  if (troubles.size() > limits::kTroublesToldOfNode.most) {
    troubles.resize(limits::kTroublesToldOfNode.most);
  }
  const auto key = [](const RankTrouble& told) {
    return std::tie(told.local_rank, told.kind, told.what);
  };
  std::sort(troubles.begin(), troubles.end(),
            [&](const auto& one, const auto& other) { return key(one) < key(other); });
  std::vector<Trouble> heard;
  for (RankTrouble& told : troubles) {
    const TimePoint since = now - std::max(told.ago, Duration::zero());
    heard.push_back({std::move(told), since});
  }
  std::vector<Trouble>& before = troubles_[first_rank];
  const bool is_new = !std::equal(
      heard.begin(), heard.end(), before.begin(), before.end(),
      [&](const Trouble& one, const Trouble& other) { return key(one.told) == key(other.told); });
  before = std::move(heard);
  if (before.empty()) troubles_.erase(first_rank);
  return is_new;
}

std::vector<TroubleSnapshot> JobProgress::DescribeTroubles(int first_rank, TimePoint now) const {
  const auto of_node = troubles_.find(first_rank);
  if (of_node == troubles_.end()) return {};
  std::vector<TroubleSnapshot> snapshots;
  for (const Trouble& trouble : of_node->second) {
    TroubleSnapshot& snapshot =
        snapshots.emplace_back(TroubleSnapshot{first_rank + trouble.told.local_rank, trouble.told});
    snapshot.told.ago = now - trouble.since;
  }
  return snapshots;
}

void JobProgress::Clear() {
  ranks_.clear();
  troubles_.clear();
  last_beats_.clear();
  stragglers_.Clear();
  looked_.reset();
}

}  // namespace muster::rendezvous
