// For how long a daemon leads that takes turns with others, and what that asks of agents.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace muster::rendezvous {

// After so long a silence etcd gives the lead to another daemon, which is found by the agents; etcd
// grants no less than one and a half times its election timeout, two seconds where that is not set.
// When etcd's own leader dies with the daemon, its members elect another first, in one or two
// rounds of up to twice that timeout, and that gives every lease its whole time anew. The agents'
// leases outlast all that.
inline constexpr std::chrono::seconds kLeadLease(1);
inline constexpr std::chrono::seconds kShortestLease(15);

// With many tenants it takes long to begin to serve, in one turn of the loop: each one's TLS
// context holds the roots of all, a millisecond for each pair of tenants.
inline std::chrono::milliseconds LeadLeaseWith(std::size_t tenants) {
  constexpr std::chrono::milliseconds kLongest(8000);  // agents' leases outlast that as well
  const auto count = static_cast<std::int64_t>(std::min<std::size_t>(tenants, 1000));
  return std::min<std::chrono::milliseconds>(
      kLeadLease + std::chrono::milliseconds(count * count * 3 / 2), kLongest);
}

}  // namespace muster::rendezvous
