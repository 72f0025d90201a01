// What each member of a complete round is to start: a pure function of the membership.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// What all Assignments of a round have in common.
struct RoundFacts {
  std::string run_id;
  Incarnation incarnation = 0;
  RoundNumber round = 0;
  int restart_count = 0;
  int max_restarts = 0;
  bool store_tunnel = false;
};

// One for each of `members`, as it is told; they are in order of group rank. Worker ranks follow
// group ranks, both overall and within each role; group rank 0 has the store and learns where the
// workers may connect from. The same arguments give the same result, so an agent that missed its
// Assignment is given it again.
std::vector<std::shared_ptr<const Directive>> MakeAssignments(
    const RoundFacts& facts, const std::vector<Placement>& members);

// Who has the worker of that rank, which must exist.
const Placement& MemberWith(int rank, const std::vector<Placement>& members);

}  // namespace muster::rendezvous
