// A minimal agent for agent_death_test: runs one worker that never ends, a shell that has started
// another process, writes both pids to stdout, and runs its loop until somebody kills it.
#include <utility>

#include <boost/asio/io_context.hpp>

#include "worker/console.h"
#include "worker/worker_group.h"

int main() {
  boost::asio::io_context io;
  muster::worker::Console console(io);
  muster::worker::WorkerGroup group(io, {}, console, {});
  muster::worker::WorkerSpec spec;
  spec.argv = {"sh", "-c", "sleep 10000 & echo $$ $!; wait"};
  group.Start({spec});
  io.run();
}
