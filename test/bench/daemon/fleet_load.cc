// A fleet of agents, each with its own session and connection, goes through what a large job goes
// through at a daemon: all join, run in peace, one worker fails and all begin anew, and, if the
// daemon is one that is remembered, it is killed and all come back. Prints how long each took and
// what the daemon cost.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/client/rendezvous_client.h"
#include "test/bench/daemon/percentile.h"
#include "test/bench/daemon/process_costs.h"
#include "test/bench/rendezvous/daemon_at.h"
#include "test/bench/rendezvous/gathering.h"
#include "test/bench/rendezvous/loop.h"

namespace muster::rendezvous::bench {
namespace {

using Clock = std::chrono::steady_clock;

// For ten thousand handshakes on a processor or two, which client and daemon share.
constexpr std::chrono::minutes kPatience(5);

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Figures {
  double gathering_s = 0, gathering_cpu_s = 0, last_join_s = 0, last_join_cpu_s = 0;
  double memory_kib = 0, peace_cpu = 0, beat_p50_ms = 0, beat_p99_ms = 0;
  double restart_s = 0, restart_cpu_s = 0, back_s = 0;
  int fenced = 0;
};

class Fleet {
 public:
  Fleet(boost::asio::io_context& io, Gathering& agents, int daemon)
      : io_(io), agents_(agents), daemon_(daemon) {}

  void Gather() {
    agents_.AllowWaiting(true);
    const int before = MemoryKib(daemon_, "Rss");
    Timed(figures_.gathering_s, figures_.gathering_cpu_s, [&] {
      // Each of ten thousand hosts has a processor of its own; here all share one, and if they came
      // all at once, each would take so long that the daemon would take it for one that stands
      // still. So many are on their way at once.
      constexpr int kOnTheirWay = 300;
      const int most = agents_.size() - 1;
      Await(
          io_, "all agents but one attend",
          [&] {
            const int more = std::min(most, agents_.welcomed() + kOnTheirWay) - agents_.joined();
            if (more > 0) agents_.Join(more);
            return agents_.welcomed() == most;
          },
          kPatience);
    });
    Timed(figures_.last_join_s, figures_.last_join_cpu_s, [&] {
      agents_.Join(1);
      AwaitAssigned();
    });
    agents_.AllowWaiting(false);
    agents_.WorkersStarted();
    // Each has beaten twice, and the storm of Joins is over.
    RunFor(io_, std::chrono::seconds(2));
    figures_.memory_kib = static_cast<double>(MemoryKib(daemon_, "Rss") - before) / agents_.size();
  }

  void RunInPeace(double seconds) {
    double took = 0, cpu = 0;
    agents_.WatchBeats(true);
    Timed(took, cpu, [&] { RunFor(io_, std::chrono::duration<double>(seconds)); });
    agents_.WatchBeats(false);
    figures_.peace_cpu = cpu / took;
    figures_.beat_p50_ms = PercentileUs(agents_.beats(), 0.5) / 1e3;
    figures_.beat_p99_ms = PercentileUs(agents_.beats(), 0.99) / 1e3;
  }

  void FailOne() {
    Timed(figures_.restart_s, figures_.restart_cpu_s, [&] {
      agents_.FailOne();
      AwaitAssigned();
    });
    agents_.WorkersStarted();
  }

  // Its keeper starts another one, or one that stands by goes on.
  void KillDaemon(int serving) {
    agents_.ExpectLoss();
    const Clock::time_point start = Clock::now();
    kill(serving, SIGKILL);
    Await(
        io_, "all have come back", [&] { return agents_.back() >= agents_.size(); }, kPatience);
    figures_.back_s = Since(start);
    figures_.fenced = agents_.fenced();
  }

  void Leave() {
    agents_.Leave();
    Await(io_, "all have left", [&] { return agents_.left() == agents_.size(); });
  }

  const Figures& figures() const { return figures_; }

 private:
  template <typename Part>
  void Timed(double& seconds, double& cpu_seconds, const Part& part) {
    const double cpu = CpuSeconds(daemon_);
    const Clock::time_point start = Clock::now();
    part();
    seconds = Since(start);
    cpu_seconds = CpuSeconds(daemon_) - cpu;
  }

  void AwaitAssigned() {
    Await(io_, "all have an Assignment", [&] { return agents_.assigned() == agents_.size(); });
  }

  boost::asio::io_context& io_;
  Gathering& agents_;
  const int daemon_;
  Figures figures_;
};

int Main(int argc, char** argv) {
  std::string endpoint, token_file;
  int agents = 1000, daemon = 0, hosts = 0;
  double seconds = 10, lease = std::chrono::duration<double>(2 * kPatience).count();
  bool kill_daemon = false;
  CLI::App app{"Goes through the life of a large job; prints one JSON object."};
  app.add_option("--endpoint", endpoint, "one, or several that stand by for one another")
      ->required();
  app.add_option("--token-file", token_file, "the daemon's; none: it runs with --insecure");
  app.add_option("--daemon-pid", daemon, "the process that serves, to look at its costs")
      ->required();
  app.add_flag("--kill-daemon", kill_daemon,
               "and to kill: one with a state directory, or with another that stands by");
  app.add_option("--agents", agents)->check(CLI::Range(2, 100'000))->capture_default_str();
  app.add_option("--hosts", hosts,
                 "the daemon is also at 127.1.1.2 to 127.1.HOSTS.2, each reached from another "
                 "address (scripts/bench/many_hosts.sh), and agents take turns with these")
      ->check(CLI::Range(0, 254));
  app.add_option("--seconds", seconds, "in peace")->capture_default_str();
  app.add_option("--lease", lease, "of each agent, in seconds; by default none can run out")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto at = DaemonAt(endpoint, token_file);
  if (!at.ok()) return app.exit(CLI::ValidationError("--endpoint", at.status().ToString()));
  spdlog::set_level(spdlog::level::off);

  boost::asio::io_context io(1);
  int next = 0;
  Gathering gathering(
      "bench", agents,
      [&](RendezvousClient::Listener& listener) {
        GrpcClientOptions options = *at;
        options.connect_timeout = kPatience;
        if (hosts > 0) {
          const std::string host = absl::StrCat("127.1.", 1 + next++ % hosts, ".2");
          options.endpoint.host = host;
          for (Endpoint& standby : options.endpoint.standbys) standby.host = host;
        }
        return MakeGrpcClient(io, std::move(options), listener);
      },
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(lease)));
  Fleet fleet(io, gathering, daemon);
  fleet.Gather();
  fleet.RunInPeace(seconds);
  fleet.FailOne();
  if (kill_daemon) fleet.KillDaemon(daemon);
  fleet.Leave();
  const Figures& f = fleet.figures();
  std::printf(
      "{\"agents\": %d, \"gathering_s\": %.6f, \"gathering_cpu_s\": %.2f, \"last_join_s\": %.6f, "
      "\"last_join_cpu_s\": %.2f, \"memory_kib\": %.1f, \"peace_cpu\": %.4f, \"beat_p50_ms\": "
      "%.3f, \"beat_p99_ms\": %.3f, \"restart_s\": %.6f, \"restart_cpu_s\": %.2f, \"back_s\": "
      "%.6f, \"fenced\": %d}\n",
      agents, f.gathering_s, f.gathering_cpu_s, f.last_join_s, f.last_join_cpu_s, f.memory_kib,
      f.peace_cpu, f.beat_p50_ms, f.beat_p99_ms, f.restart_s, f.restart_cpu_s, f.back_s, f.fenced);
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous::bench

int main(int argc, char** argv) {
  return muster::rendezvous::bench::Main(argc, argv);
}
