// Two or three daemons over one etcd, in one seeded world: who leads, and what is remembered.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "test/rendezvous/etcd/sim_leader.h"

namespace muster::rendezvous {

struct LeadersOptions {
  std::uint64_t seed = 1;
  Duration chaos = std::chrono::minutes(10);
  SimLeader::Mutations mutations;
  // From the beginning on etcd ends no lease by itself, as its leader's clock was set back.
  bool clock_is_back = false;
};

struct LeadersResult {
  // Empty: nothing was found. Else with the seed.
  std::string failure{};
  std::uint64_t tasks = 0;
  // What has happened, and how often: the counters of History.
  History history;
};

// Daemons are killed, stopped, told to end, cut off from etcd one way or both, and their requests
// and answers are late, lost and repeated; watches break; etcd is full, compacts, and extends
// leases. Meanwhile each leader writes batches, small and large, and says what needs no etcd. When
// all is healed, one has to lead within seconds, and to write.
LeadersResult SimulateLeaders(const LeadersOptions& options);

}  // namespace muster::rendezvous
