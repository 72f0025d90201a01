// What differs between one seed and another: the jobs, and what goes wrong.
#pragma once

#include <string>
#include <vector>

#include "launcher/agent/fitness.h"
#include "rendezvous/core/types.h"
#include "test/rendezvous/simulation/random.h"
#include "worker/stop_ladder.h"

namespace muster::rendezvous {

// What one job's users have asked for, on every host alike.
struct JobPlan {
  JobSettings settings;
  worker::StopLadder ladder;
  launcher::Fitness::HealthCheck health_check = launcher::Fitness::HealthCheck::kNone;
};

struct Scenario {
  std::vector<JobPlan> jobs;  // job "j<i>" has the i-th; host h is of job h modulo their number
  int hosts = 16;
  // The daemon remembers its jobs when it dies.
  bool durable = true;
  // Nothing happens but that the daemon dies and comes back: no round may end by that.
  bool only_daemon_dies = false;
  Duration longest_outage{};  // of the daemon
  int failures_per_1000_minutes = 0;
  int ignores_term_per_100 = 0;
  int ends_slowly_per_100 = 0;
  int leaves_child_per_100 = 0;
  Duration work{};

  std::string RunIdOf(int host) const;
  const JobPlan& JobOf(int host) const;
  // What the `number`-th agent process of the host asks for.
  JoinRequest RequestOf(int host, int number) const;
};

Scenario MakeScenario(Random& random);

}  // namespace muster::rendezvous
