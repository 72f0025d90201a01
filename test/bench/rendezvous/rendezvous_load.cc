// Times a rendezvous of N agents, each with its own gRPC session and connection to the daemon at
// --endpoint. Without --endpoint, the daemon's objects run in the same process.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>

#include "rendezvous/client/in_process_client.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/server/server.h"
#include "test/bench/rendezvous/daemon_at.h"
#include "test/bench/rendezvous/gathering.h"
#include "test/bench/rendezvous/loop.h"

namespace muster::rendezvous::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Prints how long all agents but one took to attend, and how long it took from the last one's Join
// until all of them held their Assignment.
void Rendezvous(boost::asio::io_context& io, Gathering& agents) {
  const Clock::time_point first = Clock::now();
  agents.Join(agents.size() - 1);
  Await(io, "all agents but one attend", [&] { return agents.welcomed() == agents.size() - 1; });
  const double gathering = Since(first);

  const Clock::time_point last = Clock::now();
  agents.Join(1);
  Await(io, "all have an Assignment", [&] { return agents.assigned() == agents.size(); });
  const double last_join = Since(last);

  agents.Leave();
  Await(io, "all have left", [&] { return agents.left() == agents.size(); });
  std::printf("{\"agents\": %d, \"gathering_s\": %.9f, \"last_join_s\": %.9f}\n", agents.size(),
              gathering, last_join);
}

int Main(int argc, char** argv) {
  std::string endpoint, token_file, run_id = "bench";
  int agents = 2;
  CLI::App app{"Times a rendezvous; prints one JSON object."};
  app.add_option("--endpoint", endpoint, "a musterd; none: everything in this process");
  app.add_option("--token-file", token_file, "the daemon's; none: it runs with --insecure");
  app.add_option("--agents", agents)->check(CLI::Range(2, 100'000))->capture_default_str();
  app.add_option("--run-id", run_id)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);

  boost::asio::io_context io(1);
  if (endpoint.empty()) {
    Server server(io);
    Gathering gathering(run_id, agents, [&](RendezvousClient::Listener& listener) {
      return std::make_unique<InProcessClient>(io, server.daemon_loop(), listener);
    });
    Rendezvous(io, gathering);
  } else {
    const auto daemon = DaemonAt(endpoint, token_file);
    if (!daemon.ok()) {
      return app.exit(CLI::ValidationError("--endpoint", daemon.status().ToString()));
    }
    Gathering gathering(run_id, agents, [&](RendezvousClient::Listener& listener) {
      return MakeGrpcClient(io, *daemon, listener);
    });
    Rendezvous(io, gathering);
  }
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous::bench

int main(int argc, char** argv) {
  return muster::rendezvous::bench::Main(argc, argv);
}
