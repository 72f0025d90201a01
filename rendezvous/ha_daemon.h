// A musterd that takes turns with others over an etcd.
#pragma once

#include <chrono>

#include "rendezvous/daemon_parts.h"
#include "rendezvous/keeper/supervised_daemon.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {

// Stands by until it leads (etcd/election.h), with all that is remembered in memory
// (etcd/journal_mirror.h), then serves, until it is told to end or leads no longer. While it stands
// by nobody can connect, so that agents that name several daemons go on to the next at once.
// Returns the exit code; kLeadsNoLonger makes its keeper start another one, which stands by.
int RunLed(const ServerConfig& config, const SupervisedDaemon& kept, DaemonStart& start);

// For how long a daemon leads that takes turns with others, and what that asks of agents.

// After so long a silence etcd gives the lead to another daemon, which is found by the agents; etcd
// grants no less than one and a half times its election timeout, two seconds where that is not set.
// When etcd's own leader dies with the daemon, its members elect another first, in one or two
// rounds of up to twice that timeout, and that gives every lease its whole time anew. The agents'
// leases outlast all that.
inline constexpr std::chrono::seconds kLeadLease(1);
inline constexpr std::chrono::seconds kShortestLease(15);

}  // namespace muster::rendezvous
