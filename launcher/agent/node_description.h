// This node, as it presents itself to the others and to its workers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "launcher/agent/rank_layout.h"
#include "launcher/config/launch_config.h"
#include "launcher/environment.h"
#include "launcher/machine/nproc.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// What the rendezvous is told of this node, except for the port of the workers' store. The node id
// is random: no other agent process has the same one. `base` is the workers' environment, `address`
// what the others reach this node by.
rendezvous::NodeInfo DescribeNode(const LaunchConfig& config, const Environment& base,
                                  const std::string& address);

// What the workers have in common. Looks at the CPUs and GPUs if workers are to be bound; the error
// says in one sentence why that is not possible.
absl::StatusOr<NodeBase> MakeNodeBase(const LaunchConfig& config, const Environment& own,
                                      const Machine& machine);

// Sets GLOO_SOCKET_IFNAME for the workers of a job of several nodes, unless the user has, where
// Gloo would listen on loopback (gloo_interface.h); `address` is what the others reach this node
// by. Returns a sentence for the user when the interface could not be found, otherwise nothing. May
// wait for DNS.
std::string SetGlooInterface(const LaunchConfig& config, const std::string& address,
                             Environment& base);

}  // namespace muster::launcher
