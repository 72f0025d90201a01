#include "rendezvous/core/phrases.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace muster::rendezvous {

std::string Count(std::size_t n, const char* noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

std::string Seconds(Duration duration) {
  const auto ms = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  if (ms < 1000) return absl::StrCat(ms, " ms");
  if (ms % 1000 == 0 || ms >= 10'000) return absl::StrCat((ms + 500) / 1000, " s");
  return absl::StrFormat("%.1f s", static_cast<double>(ms) / 1000);
}

std::string ShortList(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 8;
  if (items.size() <= kShown + 1) return absl::StrJoin(items, ", ");
  const std::vector<std::string> head(items.begin(), items.begin() + kShown);
  return absl::StrCat(absl::StrJoin(head, ", "), " and ", items.size() - kShown, " more");
}

std::string MissingHints(const std::vector<NodeInfo>& joined, int max_nodes) {
  std::set<int> asked_for;
  for (const NodeInfo& node : joined) {
    if (node.rank_hint) asked_for.insert(*node.rank_hint);
  }
  if (asked_for.empty() || *asked_for.rbegin() >= max_nodes) return "";
  // Where a node did not say its rank, which one is missing is anybody's guess.
  if (asked_for.size() != joined.size()) return "";
  std::vector<std::string> missing;
  for (int rank = 0; rank < max_nodes; ++rank) {
    if (!asked_for.contains(rank)) missing.push_back(absl::StrCat(rank));
  }
  if (missing.empty()) return "";
  return absl::StrCat(" (missing: node rank", missing.size() == 1 ? " " : "s ", ShortList(missing),
                      ")");
}

std::string DescribeFailure(const WorkerFailure& failure) {
  return absl::StrCat("rank ", failure.rank, " on host ", failure.host, " ", failure.what);
}

}  // namespace muster::rendezvous
