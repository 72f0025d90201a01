#include "rendezvous/core/phrases.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace muster::rendezvous {
namespace {

// Of a list, unless only one more would be left out.
constexpr std::size_t kShown = 8;

}  // namespace

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
  return ShortList(items, items.size());
}

std::string ShortList(const std::vector<std::string>& first, std::size_t count) {
  if (count <= kShown + 1) return absl::StrJoin(first, ", ");
  const std::vector<std::string> head(first.begin(), first.begin() + kShown);
  return absl::StrCat(absl::StrJoin(head, ", "), " and ", count - kShown, " more");
}

std::string MissingHints(const std::vector<NodeInfo>& joined, int max_nodes) {
  std::set<int> asked_for;
  for (const NodeInfo& node : joined) {
    if (node.rank_hint) asked_for.insert(*node.rank_hint);
  }
  if (asked_for.empty() || *asked_for.rbegin() >= max_nodes) return "";
  // Where a node did not say its rank, which one is missing is anybody's guess.
  if (asked_for.size() != joined.size()) return "";
  // As many as are shown: where there are a hundred thousand nodes nobody reads all their ranks.
  std::vector<std::string> shown;
  const std::size_t missing = static_cast<std::size_t>(max_nodes) - asked_for.size();
  for (int rank = 0; rank < max_nodes && shown.size() < missing && shown.size() <= kShown; ++rank) {
    if (!asked_for.contains(rank)) shown.push_back(absl::StrCat(rank));
  }
  if (missing == 0) return "";
  return absl::StrCat(" (missing: node rank", missing == 1 ? " " : "s ", ShortList(shown, missing),
                      ")");
}

std::string DescribeFailure(const WorkerFailure& failure) {
  return absl::StrCat("rank ", failure.rank, " on host ", failure.host, " ", failure.what);
}

}  // namespace muster::rendezvous
