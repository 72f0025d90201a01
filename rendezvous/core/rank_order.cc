#include "rendezvous/core/rank_order.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

// Takes the run of digits at *i without its leading zeros, and moves *i behind it.
std::string_view TakeNumber(std::string_view text, size_t* i) {
  while (*i < text.size() && text[*i] == '0') ++*i;
  const size_t start = *i;
  while (*i < text.size() && absl::ascii_isdigit(text[*i])) ++*i;
  return text.substr(start, *i - start);
}

// -1, 0 or 1 as `a` comes before, with or after `b` in natural order.
int NaturalCompare(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (absl::ascii_isdigit(a[i]) && absl::ascii_isdigit(b[j])) {
      const std::string_view x = TakeNumber(a, &i);
      const std::string_view y = TakeNumber(b, &j);
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
      if (const int order = x.compare(y); order != 0) return order < 0 ? -1 : 1;
    } else {
      if (a[i] != b[j]) return a[i] < b[j] ? -1 : 1;
      ++i, ++j;
    }
  }
  const bool a_ended = i == a.size(), b_ended = j == b.size();
  if (a_ended == b_ended) return 0;
  return a_ended ? -1 : 1;
}

// The order in which nodes without a rank of their own take the free ones.
bool ComesBefore(const Candidate& a, const Candidate& b) {
  const auto old_rank = [](const Candidate& c) {
    return c.previous_rank < 0 ? INT_MAX : c.previous_rank;
  };
  if (old_rank(a) != old_rank(b)) return old_rank(a) < old_rank(b);
  const int hint_a = a.node.rank_hint.value_or(INT_MAX);
  const int hint_b = b.node.rank_hint.value_or(INT_MAX);
  if (hint_a != hint_b) return hint_a < hint_b;
  const size_t depth = std::min(a.node.topology.size(), b.node.topology.size());
  for (size_t i = 0; i < depth; ++i) {
    if (const int order = NaturalCompare(a.node.topology[i], b.node.topology[i]); order != 0) {
      return order < 0;
    }
  }
  if (a.node.topology.size() != b.node.topology.size()) {
    return a.node.topology.size() < b.node.topology.size();
  }
  if (const int order = NaturalCompare(a.node.address, b.node.address); order != 0) {
    return order < 0;
  }
  return a.node.node_id < b.node.node_id;
}

std::string ReasonToFill(const Candidate& candidate, int rank, int size) {
  if (candidate.previous_rank >= 0) {
    return absl::StrCat("moves from rank ", candidate.previous_rank, " to ", rank,
                        ", as the round has ", size, size == 1 ? " node" : " nodes");
  }
  if (candidate.node.rank_hint) {
    return absl::StrCat("gets rank ", rank, " in order of node rank ", *candidate.node.rank_hint);
  }
  if (!candidate.node.topology.empty()) {
    return absl::StrCat("gets rank ", rank, " in order of topology and address");
  }
  return absl::StrCat("gets rank ", rank, " in order of address");
}

}  // namespace

bool NaturalLess(std::string_view a, std::string_view b) {
  return NaturalCompare(a, b) < 0;
}

std::vector<Placement> OrderRanks(std::vector<Candidate> candidates) {
  const int size = static_cast<int>(candidates.size());
  std::sort(candidates.begin(), candidates.end(), ComesBefore);
  std::vector<Placement> ranks(size);
  std::vector<bool> taken(size, false);
  const auto place = [&](Candidate& candidate, int rank, std::string reason) {
    ranks[rank] = Placement{std::move(candidate.node), rank, std::move(reason)};
    taken[rank] = true;
  };

  std::vector<Candidate> without_rank;
  for (Candidate& candidate : candidates) {
    const int rank = candidate.previous_rank;
    if (rank >= 0 && rank < size && !taken[rank]) {
      place(candidate, rank, absl::StrCat("keeps rank ", rank));
    } else {
      without_rank.push_back(std::move(candidate));
    }
  }

  // Hints such as 5 and 7 in a round of two say an order, not a place. Taking those that happen to
  // fit as places would turn that order round.
  const bool hints_are_places =
      std::all_of(without_rank.begin(), without_rank.end(), [size](const Candidate& candidate) {
        return candidate.previous_rank >= 0 || candidate.node.rank_hint.value_or(0) < size;
      });
  std::vector<Candidate> fillers;
  for (Candidate& candidate : without_rank) {
    const bool newcomer = candidate.previous_rank < 0;
    if (hints_are_places && newcomer && candidate.node.rank_hint &&
        !taken[*candidate.node.rank_hint]) {
      const int rank = *candidate.node.rank_hint;
      place(candidate, rank, absl::StrCat("asked for node rank ", rank));
    } else {
      fillers.push_back(std::move(candidate));
    }
  }

  int free_rank = 0;
  for (Candidate& candidate : fillers) {
    while (taken[free_rank]) ++free_rank;
    place(candidate, free_rank, ReasonToFill(candidate, free_rank, size));
  }
  return ranks;
}

}  // namespace muster::rendezvous
