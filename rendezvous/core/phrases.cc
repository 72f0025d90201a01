#include "rendezvous/core/phrases.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"

namespace muster::rendezvous {

std::string MissingHints(const std::vector<Candidate>& joined, int max_nodes) {
  std::set<int> asked_for;
  for (const Candidate& candidate : joined) {
    if (candidate.node->rank_hint) asked_for.insert(*candidate.node->rank_hint);
  }
  if (asked_for.empty() || *asked_for.rbegin() >= max_nodes) return "";
  // Where a node did not say its rank, which one is missing is anybody's guess.
  if (asked_for.size() != joined.size()) return "";
  // As many as are shown: where there are a hundred thousand nodes nobody reads all their ranks.
  std::vector<std::string> shown;
  const std::size_t missing = static_cast<std::size_t>(max_nodes) - asked_for.size();
  for (int rank = 0; rank < max_nodes && shown.size() < missing && shown.size() <= base::kShown;
       ++rank) {
    if (!asked_for.contains(rank)) shown.push_back(absl::StrCat(rank));
  }
  if (missing == 0) return "";
  return absl::StrCat(" (missing: node rank", missing == 1 ? " " : "s ",
                      base::ShortList(shown, missing), ")");
}

std::string DescribeFailure(const WorkerFailure& failure) {
  return absl::StrCat("rank ", failure.rank, " on host ", failure.host, " ", failure.what);
}

std::string WhyNodeIsNeeded(int min_nodes, int max_nodes, int nodes) {
  if (min_nodes == max_nodes) {
    return absl::StrCat("the job needs all of its ", base::Count(max_nodes, "node"),
                        "; with --nnodes=MIN:MAX it could go on without");
  }
  return absl::StrCat("the job needs ", base::Count(min_nodes, "node"), ", and has ", nodes);
}

const char* StateName(JobState state) {
  switch (state) {
    case JobState::kGathering:
      return "gathering";
    case JobState::kRunning:
      return "running";
    case JobState::kEnded:
      return "ended";
  }
  return "unknown";
}

const char* StateName(NodeState state) {
  switch (state) {
    case NodeState::kJoined:
      return "joined";
    case NodeState::kStarting:
      return "starting";
    case NodeState::kRunning:
      return "running";
    case NodeState::kSucceeded:
      return "succeeded";
    case NodeState::kStopping:
      return "stopping";
    case NodeState::kSpare:
      return "spare";
  }
  return "unknown";
}

}  // namespace muster::rendezvous
