// Where the nodes of a job meet, and who this node is there.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "launcher/cli/flag_table.h"
#include "launcher/cli/launch_config.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {

// Decides mode, endpoint, run id, node rank, topology, join timeout and who serves the workers'
// store. The number of nodes in `config` must be final, except for what the mode changes:
// --standalone has one node, and with static ranks the minimum is the maximum. Draws a random run
// id for a standalone job that has none, and always with --standalone. An error's message is a
// sentence for the user.
absl::Status ResolveRendezvous(const RunFlags& flags, const Environment& environment,
                               LaunchConfig& config);

// "--nnodes=2" or "--nnodes=1:4", for sentences.
std::string NodesText(const LaunchConfig& config);

}  // namespace muster::launcher
