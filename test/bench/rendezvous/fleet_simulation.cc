// Prints what a fleet of agents costs its daemon, with and without aggregators, in simulated time.
#include <chrono>
#include <cstdio>
#include <vector>

#include <CLI/CLI.hpp>

#include "test/bench/rendezvous/fleet_model.h"

namespace muster::rendezvous::bench {
namespace {

double InSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void SetMicroseconds(CLI::App& app, const char* name, Duration& duration, const char* what) {
  const auto set = [&duration](const double& value) {
    duration =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(value));
  };
  app.add_option_function<double>(name, set, what)->check(CLI::NonNegativeNumber);
}

int Main(int argc, char** argv) {
  FleetModel model;
  CLI::App app{"Simulates a fleet; prints one JSON object."};
  app.add_option("--agents", model.agents)->check(CLI::Range(2, 100'000))->capture_default_str();
  app.add_option("--rack", model.rack, "agents behind an aggregator; 0: there is none")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  SetMicroseconds(app, "--handshake-us", model.handshake,
                  "a connection, at the end that accepts it");
  SetMicroseconds(app, "--message-us", model.message, "to read or write a message");
  SetMicroseconds(app, "--item-us", model.item, "each further item of a merged message");
  SetMicroseconds(app, "--latency-us", model.latency, "between two machines");
  CLI11_PARSE(app, argc, argv);

  const FleetFigures figures = Simulate(model);
  std::printf(
      "{\"agents\": %d, \"rack\": %d, \"gathering_s\": %.3f, \"last_join_s\": %.3f, "
      "\"restart_s\": %.3f, \"peace_cores\": %.3f, \"aggregator_peace_cores\": %.4f, "
      "\"longest_turn_ms\": %.1f}\n",
      model.agents, model.rack, InSeconds(figures.gathering), InSeconds(figures.last_join),
      InSeconds(figures.restart), figures.peace_share, figures.aggregator_peace_share,
      1000 * InSeconds(figures.longest_turn));
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous::bench

int main(int argc, char** argv) {
  return muster::rendezvous::bench::Main(argc, argv);
}
