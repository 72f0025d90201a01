#include "rendezvous/core/rank_order.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <optional>
#include <tuple>
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

// Appends what has, compared byte by byte, the natural order of `text`: a run of digits is led by
// '0', which stands for all digits among the characters, and by how many there are.
void AppendNatural(std::string_view text, std::string* key) {
  size_t i = 0;
  while (i < text.size()) {
    if (!absl::ascii_isdigit(text[i])) {
      key->push_back(text[i++]);
      continue;
    }
    const std::string_view number = TakeNumber(text, &i);
    const size_t length = std::min<size_t>(number.size(), UINT16_MAX);
    key->append({'0', static_cast<char>(length >> 8), static_cast<char>(length & 0xff)});
    key->append(number);
  }
}

// By topology, of which the shorter path comes first, address and node id.
std::string NaturalOrder(const NodeInfo& node) {
  constexpr char kEnd = 0, kOneMore = 1;
  std::string key;
  for (const std::string& level : node.topology) {
    key.push_back(kOneMore);
    AppendNatural(level, &key);
    key.push_back(kEnd);
  }
  key.push_back(kEnd);
  AppendNatural(node.address, &key);
  key.push_back(kEnd);
  key.append(node.node_id);
  return key;
}

// A node without a rank of its own, and what decides when it takes a free one: in this order.
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

// Has their orders one after the other in memory, which is returned: each is compared with a dozen
// others, and where ten thousand joined in no order, each comparison would wait for memory.
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

bool NaturalLess(std::string_view a, std::string_view b) {
  std::string key_a, key_b;
  AppendNatural(a, &key_a);
  AppendNatural(b, &key_b);
  return key_a < key_b;
}

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

  // Hints such as 5 and 7 in a round of two say an order, not a place. Taking those that happen to
  // fit as places would turn that order round.
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
