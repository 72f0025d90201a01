// The store through which the workers of a round find each other: where it is, and who serves it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/agent/early_connections.h"
#include "launcher/config/launch_config.h"
#include "launcher/machine/reserved_port.h"
#include "rendezvous/core/types.h"
#include "rendezvous/fronts/tcpstore_server.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/server.h"
#include "rendezvous/tunnel/tunnel_client.h"
#include "rendezvous/tunnel/tunnel_server.h"

namespace muster::launcher {

// Before each round this node takes a port, in case it gets group rank 0; after the round's
// Assignment it serves the store there, or gives the port back. Each round has a store of its own,
// on a port of its own unless the user chose the port: leftover workers of one round cannot meet
// those of the next (PyTorch from 2.6 on puts no attempt number into its keys).
//
// With WorkerStore::kWorker the port is only held for the worker with rank 0.
//
// With WorkerStore::kTunnel it is a port for the other agents, who have to prove that they are
// (rendezvous/tunnel). The workers of each node connect to a port of their own agent on loopback,
// and the store itself is on loopback as well.
//
// Connections are accepted only from the addresses of the round's nodes and from this machine, and
// there from this process's user and from root alone.
// Lives on the loop's thread.
class WorkersStore {
 public:
  // `address` is what this node tells the others, and so what workers will connect to: the store
  // listens there alone if it is an address of this machine, as written. A name, or the address of
  // a router that leads here, leaves open which interface is meant: then it listens on all.
  // `rendezvous` is the server in this process, or null; `io` and `rendezvous` must outlive the
  // store. Several nodes with static ranks and a server here: the store shares the server's port.
  // `credentials` are what agents prove to each other, for the tunnel.
  WorkersStore(boost::asio::io_context& io, const LaunchConfig& config, const std::string& address,
               rendezvous::Server* rendezvous,
               const rendezvous::Credentials& credentials = rendezvous::Credentials::Plaintext());

  // Takes the port for the next round; the last round's store ends. The error says who is in the
  // way: "cannot serve the workers' store: listen on 0.0.0.0:29500: Address already in use; ...".
  absl::StatusOr<std::uint16_t> Prepare();

  // Serves this round's store if this node is the one to do so. Returns where this node's workers
  // reach it. FailedPrecondition when the others of the round would not use the tunnel that was
  // asked for here.
  absl::StatusOr<rendezvous::Endpoint> BeginRound(const rendezvous::Assignment& assignment);

  // Stops serving; no handler of the store keeps the loop running once `closed` was called, from
  // the loop.
  void Close(std::function<void()> closed);

  // Connections from strangers that were closed.
  std::uint64_t refused() const { return server_.refused(); }

 private:
  absl::StatusOr<rendezvous::Endpoint> BeginTunnel(const rendezvous::Assignment& assignment);

  boost::asio::io_context& io_;
  const WorkerStore kind_;
  // Where to listen; port 0 takes a free one.
  const rendezvous::Endpoint listen_;
  // The port that any other node reports with static ranks, where only node rank 0 serves.
  const std::uint16_t elsewhere_;
  rendezvous::Server* const shared_;

  // For the shared port: connections of workers that were faster than our own Assignment.
  bool round_runs_ = false;
  EarlyConnections early_;

  std::optional<ReservedPort> reserved_;
  std::vector<boost::asio::ip::tcp::acceptor> listening_;
  rendezvous::TcpStoreServer server_;

  // With a tunnel: what other agents reach, and what this node's workers do where they are not on
  // the node of the store.
  const rendezvous::Credentials credentials_;
  rendezvous::TunnelServer tunnel_;
  std::optional<rendezvous::TunnelClient> tunnel_out_;
};

}  // namespace muster::launcher
