// For how long a daemon leads that takes turns with others, and what that asks of agents.
#pragma once

#include <chrono>

namespace muster::rendezvous {

// After so long a silence etcd gives the lead to another daemon, which is found by the agents; etcd
// grants no less than one and a half times its election timeout, two seconds where that is not set.
// When etcd's own leader dies with the daemon, its members elect another first, in one or two
// rounds of up to twice that timeout, and that gives every lease its whole time anew. The agents'
// leases outlast all that.
inline constexpr std::chrono::seconds kLeadLease(1);
inline constexpr std::chrono::seconds kShortestLease(15);

}  // namespace muster::rendezvous
