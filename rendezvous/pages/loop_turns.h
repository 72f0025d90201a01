// How long the handlers of a loop hold it.
#pragma once

#include <boost/asio/io_context.hpp>

#include "base/duration_histogram.h"

namespace muster::rendezvous {

// While one handler runs, nothing else is heard, no deadline is kept and no beat is acknowledged.
// So each is measured, from when the loop came back from the kernel, or was done with the handler
// before, until it has returned; by the clock on the wall, as who waits for the loop does not care
// whether it computes or sleeps. That takes one reading of the clock for each handler and one for
// each wait (test/bench/rendezvous:loop_turns_benchmark).
class LoopTurns {
 public:
  LoopTurns();
  LoopTurns(const LoopTurns&) = delete;
  LoopTurns& operator=(const LoopTurns&) = delete;

  // As io.run(), on the only thread that runs `io`.
  void Run(boost::asio::io_context& io);

  const base::DurationHistogram& turns() const { return turns_; }

 private:
  base::DurationHistogram turns_;
};

}  // namespace muster::rendezvous
