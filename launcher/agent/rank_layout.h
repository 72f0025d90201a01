// From a node's place in a round to its workers.
#pragma once

#include <string>
#include <vector>

#include "launcher/agent/log_layout.h"
#include "launcher/config/launch_config.h"
#include "launcher/environment.h"
#include "launcher/machine/cpu_list.h"
#include "rendezvous/core/types.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// What the workers of this node have in common, round after round.
struct NodeBase {
  // As BaseEnvironment() makes it.
  Environment environment;
  // The name of this machine, for ${hostname}.
  std::string host;
  // By local rank; empty: not bound.
  std::vector<CpuList> cpus;
  // The watchdog's FIFO, or empty.
  std::string timer_file;
  // Where workers report their progress, or empty.
  std::string beat_socket;
  // HOST:PORT at which workers reach the rendezvous; empty: it has no port.
  std::string rendezvous;
};

// One spec for each local rank, in order. Each worker has the base's environment, overlaid with
// torchrun's variables. `logs` must have an entry for each local rank, and with virtual local ranks
// the environment must have a device for each (flags.cc has made sure of that).
//
// A redirected stream goes only to its file; a tee'd one to its file and, with a prefix on each
// line, to the console; any other goes straight to the console, stderr in such a way that a failure
// report can show its end. What --local-ranks-filter leaves out does not reach the console.
std::vector<worker::WorkerSpec> LayOutRanks(const LaunchConfig& config,
                                            const rendezvous::Assignment& assignment,
                                            const NodeBase& base, const AttemptLogs& logs);

}  // namespace muster::launcher
