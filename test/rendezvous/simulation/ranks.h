// Checks that the Assignments of a round are consistent.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// A member of a round: the node as it joined, and what it was told.
struct Member {
  const NodeInfo* node = nullptr;
  const Assignment* assignment = nullptr;
};

// Returns an empty string if, for the n members of a round,
//  - the group ranks are 0..n-1, one each;
//  - the nodes' worker ranks, in order of group rank, are all of 0..W-1, each rank once, W being
//    the number of workers; and the same among the workers of each role;
//  - all are told the same round, sizes, restart counts and master, which is group rank 0's node.
// Otherwise one sentence that says which of these does not hold. `members` may be in any order, but
// not empty.
std::string RanksObjection(const std::vector<Member>& members);

}  // namespace muster::rendezvous
