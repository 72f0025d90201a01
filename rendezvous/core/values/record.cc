#include "rendezvous/core/values/record.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <tuple>

#include "absl/strings/str_cat.h"

#include "base/text.h"

namespace muster::rendezvous {
namespace {

// By topology (a shorter path before its extensions), address, host name and node id.
std::string NaturalOrder(const NodeInfo& node) {
  constexpr char kEnd = 0, kOneMore = 1;
  std::string key;
  for (const std::string& level : node.topology) {
    key.push_back(kOneMore);
    base::AppendNatural(level, &key);
    key.push_back(kEnd);
  }
  key.push_back(kEnd);
  for (const std::string& name : {std::cref(node.address), std::cref(node.host)}) {
    base::AppendNatural(name, &key);
    key.push_back(kEnd);
  }
  key.append(node.node_id);
  return key;
}

// A node without a rank of its own. The members are its sort criteria, in this order.
struct Filler {
  int previous_rank;  // INT_MAX: it had none
  int hint;           // INT_MAX: it gave none
  std::string_view order;
  Candidate* candidate;

  bool is_newcomer() const { return previous_rank == INT_MAX; }
  bool operator<(const Filler& other) const {
    return std::tie(previous_rank, hint, order) <
           std::tie(other.previous_rank, other.hint, other.order);
  }
};

Filler MakeFiller(Candidate& candidate) {
  return {.previous_rank = candidate.previous_rank < 0 ? INT_MAX : candidate.previous_rank,
          .hint = candidate.node->rank_hint.value_or(INT_MAX),
          .order = candidate.order,
          .candidate = &candidate};
}

// Copies their sort keys into one contiguous buffer, which is returned: each is compared with a
// dozen others, and scattered keys of ten thousand nodes would make each comparison wait for
// memory.
std::vector<char> PutTogether(std::vector<Filler>& fillers) {
  std::size_t size = 0;
  for (const Filler& filler : fillers) size += filler.order.size();
  std::vector<char> orders(size);
  char* end = orders.data();
  for (Filler& filler : fillers) {
    char* const begin = end;
    end = std::copy(filler.order.begin(), filler.order.end(), begin);
    filler.order = {begin, filler.order.size()};
  }
  return orders;
}

std::string ReasonToFill(const Candidate& candidate, int rank, int size) {
  if (candidate.previous_rank >= 0) {
    return absl::StrCat("moves from rank ", candidate.previous_rank, " to ", rank,
                        ", as the round has ", size, size == 1 ? " node" : " nodes");
  }
  if (candidate.node->rank_hint) {
    return absl::StrCat("gets rank ", rank, " in order of node rank ", *candidate.node->rank_hint);
  }
  if (!candidate.node->topology.empty()) {
    return absl::StrCat("gets rank ", rank, " in order of topology and address");
  }
  return absl::StrCat("gets rank ", rank, " in order of address");
}

}  // namespace

Candidate::Candidate(SharedNode node, int previous_rank)
    : node(std::move(node)),
      previous_rank(previous_rank),
      order(previous_rank < 0 ? NaturalOrder(this->node) : "") {}

std::vector<Placement> OrderRanks(std::vector<Candidate> candidates) {
  const int size = static_cast<int>(candidates.size());
  std::vector<Placement> ranks(size);
  std::vector<bool> taken(size, false);
  const auto place = [&](Candidate& candidate, int rank, std::string reason) {
    Placement& placement = ranks[rank];
    placement.node = std::move(candidate.node);
    placement.group_rank = rank;
    placement.reason = std::move(reason);
    taken[rank] = true;
  };

  std::vector<Filler> without_rank;
  for (Candidate& candidate : candidates) {
    const int rank = candidate.previous_rank;
    if (rank >= 0 && rank < size && !taken[rank]) {
      place(candidate, rank, absl::StrCat("keeps rank ", rank));
    } else {
      without_rank.push_back(MakeFiller(candidate));
    }
  }
  const std::vector<char> orders = PutTogether(without_rank);
  std::sort(without_rank.begin(), without_rank.end());

  // Hints such as 5 and 7 in a round of two express an order, not places. Using those that happen
  // to fit as places would reverse that order.
  const bool hints_are_places =
      std::all_of(without_rank.begin(), without_rank.end(), [size](const Filler& filler) {
        return !filler.is_newcomer() || !filler.candidate->node->rank_hint || filler.hint < size;
      });
  std::vector<Candidate*> fillers;
  for (const Filler& filler : without_rank) {
    const std::optional<int>& hint = filler.candidate->node->rank_hint;
    if (hints_are_places && filler.is_newcomer() && hint && !taken[*hint]) {
      const int rank = *hint;
      place(*filler.candidate, rank, absl::StrCat("asked for node rank ", rank));
    } else {
      fillers.push_back(filler.candidate);
    }
  }

  int free_rank = 0;
  for (Candidate* const candidate : fillers) {
    while (taken[free_rank]) ++free_rank;
    place(*candidate, free_rank, ReasonToFill(*candidate, free_rank, size));
  }
  return ranks;
}

}  // namespace muster::rendezvous
