// A daemon's metrics: one user's jobs, and the process itself.
#pragma once

#include <chrono>

#include <boost/asio/io_context.hpp>

#include "base/durations.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/pages/metrics.h"
#include "rendezvous/server/server.h"

namespace muster::rendezvous {

// Measures how long handlers block a loop.

// While one handler runs, no message is read, no deadline is kept and no keep-alive is
// acknowledged. So each handler is timed, from the loop's return from the kernel or the end of the
// previous handler until its own end; in wall-clock time, since a blocked loop is blocked whether
// it computes or sleeps. Costs one clock reading per handler and per wait
// (test/bench/rendezvous:loop_turns_benchmark).
class LoopTurns {
 public:
  LoopTurns();
  LoopTurns(const LoopTurns&) = delete;
  LoopTurns& operator=(const LoopTurns&) = delete;

  // Like io.run(), on the only thread that runs `io`.
  void Run(boost::asio::io_context& io);

  const base::DurationHistogram& turns() const { return turns_; }

 private:
  base::DurationHistogram turns_;
};

// For one user's jobs, leases, stores and journal. `daemon_loop`: null before the user's first job.
void WriteKeptFigures(const DaemonLoop* daemon_loop, Exposition& out);

// For the process, over all users: limits, connections, loop and processor. `turns`: null if not
// measured. `started`: in wall-clock time.
void WriteProcessFigures(const Server& server, const LoopTurns* turns,
                         std::chrono::system_clock::time_point started, Exposition& out);

}  // namespace muster::rendezvous
