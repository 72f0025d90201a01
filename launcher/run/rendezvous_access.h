// How this node reaches its job's rendezvous, and whether it is the one that hosts it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"

#include "launcher/cli/launch_config.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/nproc.h"
#include "launcher/run/rank_layout.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/server/server.h"

namespace muster::launcher {

// HOST:PORT at which processes of this node reach the rendezvous; empty when it exists only inside
// the agent's process and has no port.
std::string RendezvousEndpoint(const LaunchConfig& config);

// What this node proves to the others of its job, and they to it; plaintext where the rendezvous
// has no port, and where the user wants none, who is warned. Finds the token, or makes it. An error
// is the user's mistake, in one sentence (rendezvous/net/find_credentials.h).
absl::StatusOr<rendezvous::Credentials> RendezvousCredentials(const LaunchConfig& config);

// Decided once, before the agent is made:
//  - a job of one node without an endpoint (kStandalone, kFixedPort): the rendezvous is an object
//    in this process, without network or threads;
//  - the endpoint is an address of this machine and its port is free: this process serves it;
//  - anything else: over gRPC, to a musterd or to the agent that serves.
class RendezvousAccess {
 public:
  // Looks at the endpoint, which may wait for DNS, and listens if this node is the host. The error
  // is one sentence: "cannot serve the rendezvous: listen on 10.0.0.1:80: Permission denied".
  // `credentials` are what is proven to others, and by them (RendezvousCredentials).
  static absl::StatusOr<RendezvousAccess> Open(boost::asio::io_context& io,
                                               const LaunchConfig& config,
                                               const rendezvous::Credentials& credentials);

  std::unique_ptr<rendezvous::RendezvousClient> MakeClient(
      rendezvous::RendezvousClient::Listener& listener) const;

  // The address that this node tells the others; never empty.
  const std::string& local_address() const { return local_address_; }
  // The server in this process; null if the rendezvous is elsewhere.
  rendezvous::Server* server() const { return server_.get(); }

  // Ends the access, after the agent's goodbye. A host waits until every other agent has left, as
  // they depend on it. `why`, if not empty, ends their job, too: they cannot continue without us.
  // `closed` is called from the loop.
  void Close(const std::string& why, std::function<void()> closed);

 private:
  RendezvousAccess(boost::asio::io_context& io, std::string local_address)
      : io_(&io), local_address_(std::move(local_address)) {}

  boost::asio::io_context* io_;
  rendezvous::Credentials credentials_ = rendezvous::Credentials::Plaintext();
  std::string local_address_;
  std::unique_ptr<rendezvous::Server> server_;
  std::optional<rendezvous::Endpoint> remote_;
  std::chrono::milliseconds connect_timeout_{};
  std::chrono::milliseconds reconnect_timeout_{};
  bool trust_refusals_ = false;
};

// This node, as it presents itself to the others and to its workers.

// What the rendezvous is told of this node, except for the port of the workers' store. The node id
// is random: no other agent process has the same one. `base` is the workers' environment, `address`
// what the others reach this node by.
rendezvous::NodeInfo DescribeNode(const LaunchConfig& config, const Environment& base,
                                  const std::string& address);

// What the workers have in common. Looks at the CPUs and GPUs if workers are to be bound; the error
// says in one sentence why that is not possible. `temp_dir` is FindTempDir()'s.
absl::StatusOr<NodeBase> MakeNodeBase(const LaunchConfig& config, const Environment& own,
                                      const Machine& machine, const std::string& temp_dir);

// Sets GLOO_SOCKET_IFNAME for the workers of a job of several nodes, unless the user has, where
// Gloo would listen on loopback (network.h); `address` is what the others reach this node
// by. Returns a sentence for the user when the interface could not be found, otherwise nothing. May
// wait for DNS.
std::string SetGlooInterface(const LaunchConfig& config, const std::string& address,
                             Environment& base);

}  // namespace muster::launcher
