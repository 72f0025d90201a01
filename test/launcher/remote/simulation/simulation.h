// Simulates, from one seed, how a launch tree starts 10,000 hosts, many of which fail.
//
// Every process of the tree is a real FanOut with simulated links. Attempts are refused, never
// answered, slow, or break just before the answer; links break, and both ends notice at different
// times; processes die; hosts stay dead for good. The children of a dead process run on for a
// while, and their host refuses to be started again meanwhile, as a real one does (by a lock). At
// every step: no process has more links than its fan-out; no host is started by two processes that
// are both connected to the root; no host is started again whose end the root knows.
//
// Then the faults stop. Within a bounded time every host that is neither dead nor given up must
// run, and the root's knowledge of each host must be true. Then the nodes end one by one; the root
// must learn of each, with its exit code. Then the root stops, and nothing may be left on any host.
//
// Every choice is drawn from the seed: the same seed gives the same run.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

namespace muster::launcher {

struct SimulationOptions {
  std::uint64_t seed = 1;
  int hosts = 10'000;
  // Gets every line of the trace, if set.
  std::ostream* trace = nullptr;
};

struct SimulationResult {
  // Empty on success. Otherwise what was violated, when and how, with the seed.
  std::string failure;
  std::int64_t events = 0;
  // The hash of the trace.
  std::uint64_t trace_hash = 0;
  // The largest number of processes between a host and the root when all were up.
  int depth = 0;
  // How often each event occurred.
  std::map<std::string, std::int64_t> happenings;
};

SimulationResult Simulate(const SimulationOptions& options);

}  // namespace muster::launcher
