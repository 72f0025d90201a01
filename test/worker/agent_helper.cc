// A minimal agent for agent_death_test: runs one worker that never ends, writes its pid to stdout,
// and runs its loop until somebody kills it.
#include <cstdio>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "worker/console.h"
#include "worker/worker_group.h"

int main() {
  boost::asio::io_context io;
  muster::worker::Console console(io);
  muster::worker::WorkerGroup group(io, {}, console, {});
  muster::worker::WorkerSpec spec;
  spec.argv = {"sleep", "10000"};
  group.Start({spec});
  std::printf("%d\n", group.pids()[0]);
  std::fflush(stdout);
  io.run();
}
