#include "launcher/replay/gaps.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/phrases.h"

namespace muster::launcher {
namespace {

using std::chrono::nanoseconds;

double SecondsIn(nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// "node ranks 1, 3" of those that have no log; at most as many as ShortList() needs.
std::string MissingRanks(const RoundSpan& round, std::size_t missing) {
  std::set<int> there;
  for (const RoundNode& member : round.members) there.insert(member.node_rank);
  std::vector<std::string> ranks;
  for (int rank = 0; rank < round.nodes && ranks.size() < base::kShown + 1; ++rank) {
    if (there.count(rank) == 0) ranks.push_back(absl::StrCat(rank));
  }
  return absl::StrCat(missing == 1 ? "node rank " : "node ranks ",
                      base::ShortList(ranks, std::max(missing, ranks.size())));
}

void NoteMissingNodes(Timeline& timeline) {
  std::vector<std::string> gaps;
  for (const RoundSpan& round : timeline.rounds) {
    const auto there = static_cast<int>(round.members.size());
    if (there >= round.nodes) continue;
    const auto missing = static_cast<std::size_t>(round.nodes - there);
    gaps.push_back(absl::StrCat("round ", round.number, " (", MissingRanks(round, missing), ")"));
  }
  if (gaps.empty()) return;
  timeline.notes.push_back(
      absl::StrCat("the logs of some nodes are missing, and their ranks are not shown: ",
                   base::ShortList(gaps)));
}

void NoteLogsThatEnd(Timeline& timeline) {
  std::vector<std::string> ends;
  for (const RoundSpan& round : timeline.rounds) {
    for (const RoundNode& member : round.members) {
      if (member.gone) continue;
      const TimelineNode& node = timeline.nodes[member.node];
      ends.push_back(absl::StrCat(node.id, " (round ", round.number, ", ",
                                  absl::StrFormat("%.3f s", SecondsIn(node.last)), ")"));
    }
  }
  if (ends.empty()) return;
  timeline.notes.push_back(
      absl::StrCat("the logs of these nodes end in the middle of a round, as those of nodes that "
                   "were killed do: ",
                   base::ShortList(ends)));
}

void NoteClocks(Timeline& timeline) {
  std::vector<std::string> moved, alone, stepped;
  const TimelineNode* reference = nullptr;
  for (const TimelineNode& node : timeline.nodes) {
    const NodeClock& clock = node.clock;
    if (clock.is_reference) reference = &node;
    if (clock.moved.count() != 0) {
      moved.push_back(
          absl::StrFormat("%s by %+.3f s (from %s)", node.id, SecondsIn(clock.moved),
                          base::Count(static_cast<std::size_t>(clock.common), "moment")));
    }
    if (!clock.is_reference && clock.common == 0) alone.push_back(node.id);
    if (std::chrono::abs(clock.stepped) >= std::chrono::milliseconds(50)) {
      stepped.push_back(absl::StrFormat("%s by %+.3f s", node.id, SecondsIn(clock.stepped)));
    }
  }
  if (!moved.empty()) {
    timeline.notes.push_back(
        absl::StrCat("the clocks of nodes differ; these were moved to that of ", reference->id,
                     ", by the beginnings and ends of rounds in common: ", base::ShortList(moved)));
  }
  if (!alone.empty()) {
    timeline.notes.push_back(absl::StrCat(
        "these nodes have no round in common with the others, and their own clocks are "
        "believed: ",
        base::ShortList(alone)));
  }
  if (!stepped.empty()) {
    timeline.notes.push_back(
        absl::StrCat("these clocks were set while the job ran, which moves nothing here: ",
                     base::ShortList(stepped)));
  }
}

}  // namespace

void NoteGaps(Timeline& timeline) {
  NoteMissingNodes(timeline);
  NoteLogsThatEnd(timeline);
  NoteClocks(timeline);
}

}  // namespace muster::launcher
