// A minimal agent for agent_death_test: agent_helper CGROUP MARK SCRIPT runs a shell script as its
// only worker, with MARK (NAME=VALUE) in its environment and, if CGROUP is "cgroup", in a control
// group where there may be one; and its loop until somebody kills it.
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "worker/console.h"
#include "worker/worker_group.h"

int main(int, char** argv) {
  boost::asio::io_context io;
  muster::worker::Console console(io);
  muster::worker::WorkerGroup group(io, {.use_cgroup = std::string(argv[1]) == "cgroup"}, console,
                                    {});
  muster::worker::WorkerSpec spec;
  spec.argv = {"sh", "-c", argv[3]};
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin", argv[2]};
  group.Start({spec});
  io.run();
}
