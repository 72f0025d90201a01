// The simulation of the launch tree as a program, for mutants of FanOut: exits with 1 and prints
// "caught by" if a check failed for one of the seeds.
//
// usage: simulation_main SEEDS HOSTS
#include <cstdlib>
#include <iostream>

#include "test/launcher/remote/simulation/simulation.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int seed = 1; seed <= std::atoi(argv[1]); ++seed) {
    const auto result = muster::launcher::Simulate(
        {.seed = static_cast<std::uint64_t>(seed), .hosts = std::atoi(argv[2])});
    if (result.failure.empty()) continue;
    std::cout << "caught by " << result.failure.substr(0, result.failure.find('\n')) << "\n";
    return 1;
  }
  return 0;
}
