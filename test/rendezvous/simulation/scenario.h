// What differs between one seed and another: the jobs, and how much goes wrong.
#pragma once

#include <vector>

#include "rendezvous/core/types.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/simulated_agent.h"

namespace muster::rendezvous {

struct Scenario {
  std::vector<JobSettings> jobs;  // job "j<i>" has the i-th
  Duration lease{};               // of all nodes; zero: none has one
  Habits habits;
  int faults_per_10000 = 0;    // of the messages that arrive
  int slow_per_1000 = 0;       // of the messages that are sent
  Duration longest_delay{};    // of those
  Duration longest_absence{};  // until a node comes back as a new process

  // What the `incarnation`-th process of node `index` asks for.
  JoinRequest RequestOf(int index, int incarnation, Random& random) const;
};

Scenario MakeScenario(Random& random);

}  // namespace muster::rendezvous
