// Runs simulated leaders from the command line:
//   leaders_simulation [--first-seed=1] [--seeds=100] [--minutes=10] [--mutant=NAME]
// Ends at the first seed that fails, says which, and exits with 1.
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "test/rendezvous/etcd/leaders.h"

int main(int argc, char** argv) {
  using muster::rendezvous::LeadersOptions;
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 100;
  LeadersOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const std::size_t equals = flag.find('=');
    const std::string_view name = flag.substr(0, equals);
    const std::string value(equals == flag.npos ? "" : flag.substr(equals + 1));
    if (name == "--first-seed") {
      first_seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--seeds") {
      seeds = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--minutes") {
      options.chaos = std::chrono::minutes(std::atoi(value.c_str()));
    } else if (value == "reads_stale") {
      options.mutations.client.reads_stale = true;
    } else if (value == "speaks_when_its_lease_is_over") {
      options.mutations.speaks_when_its_lease_is_over = true;
    } else {
      std::cerr << "unknown flag " << flag << "\n";
      return 2;
    }
  }
  muster::rendezvous::History all;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    options.seed = seed;
    const auto result = muster::rendezvous::SimulateLeaders(options);
    if (!result.failure.empty()) {
      std::cout << result.failure << "\ncaught by history at seed " << seed << "\n";
      return 1;
    }
    all.Add(result.history);
  }
  std::cout << seeds << " seeds: " << all.take_overs << " leaders (" << all.followed
            << " of them had followed), " << all.acknowledgements << " batches acknowledged ("
            << all.large_batches << " of them large), " << all.kept_batches << " kept and "
            << all.lost_batches << " lost that were not, " << all.full << " without space, "
            << all.words << " words of leaders; nothing found\n";
  return 0;
}
