// What depends on the seed: the jobs, and how much goes wrong.
#pragma once

#include <vector>

#include "rendezvous/core/types.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/simulated_agent.h"

namespace muster::rendezvous {

struct Scenario {
  std::vector<JobSettings> jobs;  // the i-th is for job "j<i>"
  Duration lease{};               // for all nodes; zero: no leases
  Habits habits;
  int faults_per_10000 = 0;    // per 10,000 messages that arrive
  int slow_per_1000 = 0;       // per 1,000 messages that are sent
  Duration longest_delay{};    // of slow messages
  Duration longest_absence{};  // until a node comes back as a new process

  // The Join of the `incarnation`-th process of node `index`.
  JoinRequest RequestOf(int index, int incarnation, Random& random) const;
};

Scenario MakeScenario(Random& random);

}  // namespace muster::rendezvous
