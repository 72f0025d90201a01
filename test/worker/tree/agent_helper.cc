// A minimal agent for agent_death_test and lost_touch_test: agent_helper CGROUP MARK SCRIPT
// [LEASE_MS [PORT [PORT2]]] runs a shell script as its only worker, with MARK (NAME=VALUE) in its
// environment and, if CGROUP is "cgroup" and the machine permits it, in a control group. It runs
// until the worker has exited or it is killed. With LEASE_MS the workers' deadline is that far
// ahead, and is extended ten times in that period; 0: no deadline. With PORT its guard sends "dead"
// to that port, or to PORT2, when the agent has died. It prints to stdout how a worker failed.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "worker/group/worker_group.h"
#include "worker/output/console.h"
#include "worker/tree/death_notice.h"

using muster::worker::FailureRecord;

namespace {

muster::worker::ServerAddress AddressOf(const char* port) {
  const boost::asio::ip::tcp::endpoint to(boost::asio::ip::address_v4::loopback(),
                                          static_cast<std::uint16_t>(std::atoi(port)));
  return {to.data(), to.size()};
}

}  // namespace

int main(int argc, char** argv) {
  boost::asio::io_context io;
  muster::worker::Console console(io);
  boost::asio::steady_timer beat(io);
  muster::worker::WorkerGroupCallbacks callbacks;
  callbacks.on_first_failure = [](const FailureRecord& failure) {
    std::printf("%s\n", failure.what.c_str());
    std::fflush(stdout);
  };
  // The next beat may be on its way already.
  bool done = false;
  callbacks.on_done = [&](const muster::worker::GroupResult&) {
    done = true;
    beat.cancel();
  };
  muster::worker::WorkerGroupOptions options{.use_cgroup = std::string(argv[1]) == "cgroup"};
  if (argc > 5) options.death_notice = {AddressOf(argv[5]), "dead"};
  muster::worker::WorkerGroup group(io, options, console, std::move(callbacks));
  const std::chrono::milliseconds lease(argc > 4 ? std::atoi(argv[4]) : 0);
  std::function<void()> move_on = [&] {
    group.SetDeadline(std::chrono::steady_clock::now() + lease);
    beat.expires_after(lease / 10);
    beat.async_wait([&](boost::system::error_code error) {
      if (!error && !done) move_on();
    });
  };
  if (lease.count() > 0) move_on();
  muster::worker::WorkerSpec spec;
  spec.argv = {"sh", "-c", argv[3]};
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin", argv[2]};
  spec.stdout_spec.to_console = false;
  group.Start({spec});
  if (argc > 6) group.MoveDeathNotice(AddressOf(argv[6]));
  io.run();
}
