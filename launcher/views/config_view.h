// What `--print-config` shows: how the command line and the environment were understood.
#pragma once

#include <string>
#include <vector>

#include "base/redact.h"
#include "launcher/cli/launch_config.h"
#include "launcher/machine/environment.h"
#include "launcher/run/rank_layout.h"
#include "rendezvous/core/values/types.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// A JSON object with a member for each field of the config, times in seconds; ends in a newline.
std::string ConfigText(const LaunchConfig& config, const base::Redactor& redact);

// What `--dry-run` shows: what each worker of this node would get.

// The place this node would have if every node joined with the same number of workers. Where the
// rendezvous would decide (a node without a rank, the address and port of the workers' store), it
// shows rank 0 and "(decided at start)".
rendezvous::Assignment SupposedAssignment(const LaunchConfig& config);

// Where logs would be; the random characters, drawn at the start, are shown as X. `temp_dir` is
// FindTempDir()'s.
AttemptLogs SupposedLogs(const LaunchConfig& config, const std::string& temp_dir);

// For stdout: for each worker its command, the variables that differ from `own`, its CPUs and where
// its output goes; quoted for a shell.
std::string DryRunText(const LaunchConfig& config, const Environment& own,
                       const std::vector<worker::WorkerSpec>& specs);

}  // namespace muster::launcher
