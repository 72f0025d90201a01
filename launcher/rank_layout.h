// From a node's place in a round to its workers.
#pragma once

#include <vector>

#include "launcher/environment.h"
#include "launcher/launch_config.h"
#include "launcher/log_layout.h"
#include "rendezvous/core/types.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// One spec for each local rank, in order. Each worker has `base` for its environment, with
// torchrun's variables put over it; a variable that only has a default (OMP_NUM_THREADS) is left as
// `base` has it. `logs` must have an entry for each local rank.
//
// A redirected stream goes to its file alone; a tee'd one to its file and, with a prefix on each
// line, to the console; any other goes straight to the console, stderr through a pipe so that a
// failure report can show its end.
std::vector<worker::WorkerSpec> LayOutRanks(const LaunchConfig& config,
                                            const rendezvous::Assignment& assignment,
                                            const Environment& base, const AttemptLogs& logs);

}  // namespace muster::launcher
