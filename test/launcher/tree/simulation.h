// Simulates, from one seed, how a launch tree starts 10,000 hosts of which many fail.
//
// Every process of the tree is a real FanOut with simulated links. Attempts are refused, never
// answered, slow, or end just before the answer; links break, and both ends hear of it at different
// times; processes die; hosts stay dead for good. What was started by a process that is gone goes
// on for a while, and a host in which that is so refuses to be started again, as a real one does
// (by a lock). At every step: no process has more links than its fan-out; no host is started by two
// processes that are both connected to the root; no host is started again whose end the root knows.
//
// Then the faults end. Within a bounded time every host that is not dead and not given up has to
// run, and what the root was told of each host has to be what is so. Then the nodes end, one after
// the other; the root has to hear of each, with its exit code. Then the root stops, and nothing may
// be left on any host.
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
  // Receives every line of the trace, if set.
  std::ostream* trace = nullptr;
};

struct SimulationResult {
  // Empty if all went well. Otherwise what was violated, when and how, with the seed.
  std::string failure;
  std::int64_t events = 0;
  // The hash of the trace.
  std::uint64_t trace_hash = 0;
  // How many processes lay between a host and the root, at most, when all was up.
  int depth = 0;
  // How often each thing happened.
  std::map<std::string, std::int64_t> happenings;
};

SimulationResult Simulate(const SimulationOptions& options);

}  // namespace muster::launcher
