// N agents attend a job of a daemon and send a beat once a second for a while. Measures what that
// costs the daemon's process, according to /proc, and how long the answer to a beat takes.
#include <chrono>
#include <cstdio>
#include <string>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>

#include "rendezvous/client/rendezvous_client.h"
#include "test/bench/daemon/percentile.h"
#include "test/bench/daemon/process_costs.h"
#include "test/bench/rendezvous/daemon_at.h"
#include "test/bench/rendezvous/gathering.h"
#include "test/bench/rendezvous/loop.h"

namespace muster::rendezvous::bench {
namespace {

using Clock = std::chrono::steady_clock;

void Attend(boost::asio::io_context& io, Gathering& agents, int daemon, double seconds,
            bool tells_steps) {
  if (tells_steps) agents.TellSteps();
  const int rss_before = MemoryKib(daemon, "Rss"), pss_before = MemoryKib(daemon, "Pss");
  agents.Join(agents.size());
  Await(io, "all have an Assignment", [&] { return agents.assigned() == agents.size(); });
  agents.WorkersStarted();
  // Each has beaten twice, and the storm of Joins is over.
  RunFor(io, std::chrono::seconds(2));

  agents.WatchBeats(true);
  const double cpu_before = CpuSeconds(daemon);
  const Clock::time_point start = Clock::now();
  RunFor(io, std::chrono::duration<double>(seconds));
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  const double cpu = CpuSeconds(daemon) - cpu_before;
  agents.WatchBeats(false);
  const double rss = MemoryKib(daemon, "Rss") - rss_before;
  const double pss = MemoryKib(daemon, "Pss") - pss_before;

  agents.Leave();
  Await(io, "all have left", [&] { return agents.left() == agents.size(); });
  std::printf(
      "{\"agents\": %d, \"seconds\": %.3f, \"cpu_seconds\": %.2f, \"rss_kib\": %.0f, "
      "\"pss_kib\": %.0f, \"beats\": %zu, \"beat_p50_us\": %.1f, \"beat_p99_us\": %.1f}\n",
      agents.size(), took, cpu, rss, pss, agents.beats().size(), PercentileUs(agents.beats(), 0.5),
      PercentileUs(agents.beats(), 0.99));
}

int Main(int argc, char** argv) {
  std::string endpoint, token_file;
  int agents = 1000, daemon = 0;
  double seconds = 10;
  bool tells_steps = false;
  CLI::App app{"Attends with many agents; prints one JSON object."};
  app.add_option("--endpoint", endpoint)->required();
  app.add_option("--token-file", token_file, "the daemon's; none: it runs with --insecure");
  app.add_option("--daemon-pid", daemon, "the process that is there, to look at its costs")
      ->required();
  app.add_option("--agents", agents)->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--seconds", seconds, "how long to look at it")->capture_default_str();
  app.add_flag("--tell-steps", tells_steps, "eight ranks of each tell of their steps");
  CLI11_PARSE(app, argc, argv);
  const auto at = DaemonAt(endpoint, token_file);
  if (!at.ok()) return app.exit(CLI::ValidationError("--endpoint", at.status().ToString()));
  spdlog::set_level(spdlog::level::off);

  boost::asio::io_context io(1);
  Gathering gathering("bench", agents, [&](RendezvousClient::Listener& listener) {
    return MakeGrpcClient(io, *at, listener);
  });
  Attend(io, gathering, daemon, seconds, tells_steps);
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous::bench

int main(int argc, char** argv) {
  return muster::rendezvous::bench::Main(argc, argv);
}
