// A musterd that takes turns with others over an etcd.
#pragma once

#include "rendezvous/keeper/kept_daemon.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {

// Stands by until it leads (etcd/election.h), with all that is remembered in memory
// (etcd/journal_mirror.h), then serves, until it is told to end or leads no longer. While it stands
// by nobody can connect, so that agents that name several daemons go on to the next at once.
// Returns the exit code; kLeadsNoLonger makes its keeper start another one, which stands by.
int RunLed(const ServerConfig& config, const KeptDaemon& kept);

}  // namespace muster::rendezvous
