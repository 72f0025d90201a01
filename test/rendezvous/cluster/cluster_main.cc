// Runs simulated clusters from the command line:
//   cluster_simulation [--first-seed=1] [--seeds=100] [--minutes=60] [--daemons=1] [--mutant=NAME]
//                      [--trace]
// --daemons=several: two with every other seed, else three.
// Ends at the first seed that fails, says which, and exits with 1.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "test/rendezvous/cluster/cluster.h"

namespace muster::rendezvous {
namespace {

// How often a long run says how far it has come.
constexpr std::uint64_t kSeedsBetweenSigns = 500;

// Of daemons: how many depends on the seed.
constexpr int kSeveral = 0;

struct Flags {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 100;
  int minutes = 60;
  int daemons = 1;
  std::string mutant;
  bool trace = false;
};

bool Mutate(std::string_view name, ClusterOptions& options) {
  DaemonMutations& daemon = options.daemon_mutations;
  AgentMutations& agent = options.agent_mutations;
  const std::pair<std::string_view, bool*> mutations[] = {
      {"answers_before_commit", &daemon.answers_before_commit},
      {"reuses_incarnations", &daemon.reuses_incarnations},
      {"forgets_store", &daemon.forgets_store},
      {"reads_stale", &daemon.reads_stale},
      {"grants_short_leases", &daemon.grants_short_leases},
      {"speaks_when_it_does_not_lead", &daemon.speaks_when_it_does_not_lead},
      {"does_not_fence", &agent.does_not_fence},
      {"guard_tells_too_early", &agent.guard_tells_too_early},
      {"reports_what_the_guard_killed", &agent.reports_what_the_guard_killed}};
  for (const auto& [known, mutation] : mutations) {
    if (known == name) return *mutation = true;
  }
  return name.empty();
}

int Main(const Flags& flags) {
  Duration simulated{};
  Incidents incidents;
  for (std::uint64_t seed = flags.first_seed; seed < flags.first_seed + flags.seeds; ++seed) {
    const int several = seed % 2 == 0 ? 2 : 3;
    ClusterOptions options{.seed = seed,
                           .daemons = flags.daemons == kSeveral ? several : flags.daemons,
                           .chaos = std::chrono::minutes(flags.minutes),
                           .trace = flags.trace ? &std::cout : nullptr};
    if (!Mutate(flags.mutant, options)) {
      std::cerr << "there is no mutant " << flags.mutant << "\n";
      return 2;
    }
    const ClusterResult result = SimulateCluster(options);
    simulated += result.simulated;
    incidents.Add(result.incidents);
    if (result.failure.empty()) {
      const std::uint64_t done = seed - flags.first_seed + 1;
      if (done % kSeedsBetweenSigns == 0) {
        std::cerr << "seed " << seed << ": " << done << " of " << flags.seeds << " done\n";
      }
      continue;
    }
    std::cout << result.failure << "\ncaught by " << result.check << " at seed " << seed << "\n";
    return 1;
  }
  for (std::size_t i = 0; i < kIncidentNames.size(); ++i) {
    std::cout << incidents.counts()[i] << " x " << kIncidentNames[i] << "\n";
  }
  std::cout << flags.seeds << " seeds, " << simulated / std::chrono::minutes(1)
            << " simulated minutes, nothing found\n";
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  muster::rendezvous::Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const std::size_t equals = flag.find('=');
    const std::string_view name = flag.substr(0, equals);
    const std::string value(equals == flag.npos ? "" : flag.substr(equals + 1));
    if (name == "--first-seed") {
      flags.first_seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--seeds") {
      flags.seeds = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--minutes") {
      flags.minutes = std::atoi(value.c_str());
    } else if (name == "--daemons") {
      flags.daemons = value == "several" ? muster::rendezvous::kSeveral : std::atoi(value.c_str());
    } else if (name == "--mutant") {
      flags.mutant = value;
    } else if (name == "--trace") {
      flags.trace = true;
    } else {
      std::cerr << "unknown flag " << flag << "\n";
      return 2;
    }
  }
  return muster::rendezvous::Main(flags);
}
