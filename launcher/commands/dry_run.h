// What `--dry-run` shows: what each worker of this node would get.
#pragma once

#include <string>
#include <vector>

#include "launcher/agent/log_layout.h"
#include "launcher/config/launch_config.h"
#include "launcher/environment.h"
#include "rendezvous/core/types.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// The place this node would have if every node joined with the same number of workers. Where the
// rendezvous would decide (a node without a rank, the address and port of the workers' store), it
// shows rank 0 and "(decided at start)".
rendezvous::Assignment SupposedAssignment(const LaunchConfig& config);

// Where logs would be; the random characters, drawn at the start, are shown as X.
AttemptLogs SupposedLogs(const LaunchConfig& config, const std::string& temp_dir);

// For stdout: for each worker its command, the variables that differ from `own`, its CPUs and where
// its output goes; quoted for a shell.
std::string DryRunText(const LaunchConfig& config, const Environment& own,
                       const std::vector<worker::WorkerSpec>& specs);

}  // namespace muster::launcher
