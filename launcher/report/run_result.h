// How a run ended for this agent: what the agent hands to report.h.
#pragma once

#include <string>
#include <variant>

#include "absl/status/status.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// The rendezvous could not be served or reached, or ended without a verdict.
struct RendezvousFailed {
  absl::Status status;
};

// This node cannot start its workers: something is wrong with their log directory or port.
struct NodeFailed {
  absl::Status status;
};

// A signal to this agent ended the run here, before any verdict.
struct Interrupted {
  int signal = 0;
};

// This node has left a job that goes on without it. `why` is about the node: "Slurm drains it".
struct LeftEarly {
  std::string why;
};

// A Verdict is the job's end, the same on every node.
using RunResult =
    std::variant<rendezvous::Verdict, RendezvousFailed, NodeFailed, Interrupted, LeftEarly>;

}  // namespace muster::launcher
