// Which node gets which group rank, and why. A pure function of who is in the round.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// A node that is in the round, with the group rank it had in the round before (-1: it had none).
struct Candidate {
  Candidate(SharedNode node, int previous_rank = -1);

  SharedNode node;
  int previous_rank;
  // Of one that had no rank: compared byte by byte, where it comes among the others. Made here, as
  // ten thousand come one by one and are ordered at once.
  std::string order;
};

// A node with its place. `reason` is shown to people: "keeps rank 1", "asked for node rank 0",
// "fills rank 2".
struct Placement {
  SharedNode node;
  int group_rank = 0;
  std::string reason;

  bool operator==(const Placement&) const = default;
};

// Gives the candidates the group ranks 0..n-1, one each, and returns them in that order. The result
// does not depend on the order of the argument. In this order of strength:
//  1. a node keeps the rank it had, as long as the round is large enough for it;
//  2. a node that asked for a rank (rank_hint) gets it, when every newcomer's hint fits into
//     the round and nobody keeps that rank; otherwise hints say who comes before whom;
//  3. nodes without a hint come after those with one: neighbours in the topology next to one
//     another, then in natural order of address ("node2" before "node10"), then of node id.
// Newcomers, and nodes whose old rank no longer exists, fill the free ranks from the lowest.
// Previous ranks must be distinct, or -1.
std::vector<Placement> OrderRanks(std::vector<Candidate> candidates);

// Whether `a` comes before `b` when runs of digits compare by their value: "10.0.0.9" <
// "10.0.0.10".
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace muster::rendezvous
