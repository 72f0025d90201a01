// Figures of a daemon itself: what it keeps for one user's jobs, and what it is as a process.
#pragma once

#include <chrono>

#include "rendezvous/fronts/driver.h"
#include "rendezvous/pages/exposition.h"
#include "rendezvous/pages/loop_turns.h"
#include "rendezvous/server.h"

namespace muster::rendezvous {

// Of one user's jobs, leases, stores and journal. `driver`: null before his first job.
void WriteKeptFigures(const Driver* driver, Exposition& out);

// Of the process, whoever its users are: limits, connections, loop and processor. `turns`: null
// where nobody measures them. `started`: when it was, by the clock on the wall.
void WriteProcessFigures(const Server& server, const LoopTurns* turns,
                         std::chrono::system_clock::time_point started, Exposition& out);

}  // namespace muster::rendezvous
