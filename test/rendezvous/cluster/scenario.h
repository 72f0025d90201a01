// What depends on the seed: the jobs, and what goes wrong.
#pragma once

#include <string>
#include <vector>

#include "launcher/run/agent_core.h"
#include "rendezvous/core/values/types.h"
#include "test/rendezvous/simulation/random.h"
#include "worker/worker_spec.h"

namespace muster::rendezvous {

// What the users of one job asked for, the same on every host.
struct JobPlan {
  JobSettings settings;
  worker::StopLadder ladder;
  bool checks_health = false;
};

struct Scenario {
  std::vector<JobPlan> jobs;  // the i-th is job "j<i>"; host h works for job h modulo their number
  int hosts = 16;
  // More than one: they take turns, over an etcd.
  int daemons = 1;
  // Whether the daemon remembers its jobs when it dies.
  bool durable = true;
  // Nothing fails except that the daemon dies and comes back, or that something happens to one of
  // several, which must not end any round.
  bool only_daemon_dies = false;
  Duration longest_outage{};  // of the daemon
  int failures_per_1000_minutes = 0;
  int ignores_term_per_100 = 0;
  int ends_slowly_per_100 = 0;
  int leaves_child_per_100 = 0;
  Duration work{};

  std::string RunIdOf(int host) const;
  const JobPlan& JobOf(int host) const;
  // The Join of the host's `number`-th agent process.
  JoinRequest RequestOf(int host, int number) const;
};

Scenario MakeScenario(Random& random, int daemons);

}  // namespace muster::rendezvous
