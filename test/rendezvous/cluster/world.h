// What every part of a simulated cluster uses: time, randomness, network, checks, trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "test/rendezvous/cluster/checks/agent_session_checks.h"
#include "test/rendezvous/cluster/checks/durability_checks.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/checks/job_checks.h"
#include "test/rendezvous/cluster/checks/life_checks.h"
#include "test/rendezvous/cluster/checks/round_checks.h"
#include "test/rendezvous/cluster/checks/store_checks.h"
#include "test/rendezvous/cluster/checks/violations.h"
#include "test/rendezvous/cluster/disk.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/scheduler.h"
#include "test/rendezvous/simulation/trace.h"

namespace muster::rendezvous {

struct Checks {
  Checks(Violations& violations, Incidents& incidents, const Disk& disk)
      : violations(violations),
        rounds(violations, incidents),
        jobs(violations, incidents),
        store(violations),
        durability(violations, disk),
        agent_session(violations),
        lives(violations) {}

  Violations& violations;
  RoundChecks rounds;
  JobChecks jobs;
  StoreChecks store;
  DurabilityChecks durability;
  AgentSessionChecks agent_session;
  LifeChecks lives;
};

// References to objects that outlive every part. Copied freely.
struct World {
  Scheduler& scheduler;
  Random& random;
  Network& network;
  Checks& checks;
  Incidents& incidents;
  Trace& trace;

  template <typename... Parts>
  void Log(const Parts&... parts) const {
    trace.Add(absl::StrCat("@", scheduler.now().time_since_epoch() / std::chrono::microseconds(1),
                           " ", parts...));
  }
};

}  // namespace muster::rendezvous
