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

// What the rendezvous is told of this node, but for the port of the workers' store. The node id is
// drawn: no other agent process has it. `base` is the workers' environment, `address` what the
// others reach this node by.
rendezvous::NodeInfo DescribeNode(const LaunchConfig& config, const Environment& base,
                                  const std::string& address);

// What the workers have in common. Looks at the CPUs and GPUs if workers are to be bound; the error
// says in one sentence why they cannot be.
absl::StatusOr<NodeBase> MakeNodeBase(const LaunchConfig& config, const Environment& own,
                                      const Machine& machine);

// Sets GLOO_SOCKET_IFNAME for the workers of a job of several nodes, unless the user has, where
// Gloo would listen on loopback (gloo_interface.h); `address` is what the others reach this node
// by. Returns what the user should know, in one sentence: that the interface could not be found.
// Empty: nothing. May wait for DNS.
std::string SetGlooInterface(const LaunchConfig& config, const std::string& address,
                             Environment& base);

}  // namespace muster::launcher
