// The store through which the workers of a round find each other: where it is, and who serves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "launcher/cli/launch_config.h"
#include "launcher/machine/network.h"
#include "rendezvous/client/tunnel_client.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/fronts/tcpstore_server.h"
#include "rendezvous/fronts/tunnel_server.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/server/server.h"

namespace muster::launcher {

// Connections of workers that are faster than their own agent.

// Workers on other nodes may start, and connect to the store of their round, before the agent that
// is to serve it has heard that it is. Their connections wait here, unread, for that moment.
//
// There may be as many as one for each worker of a large job, but never so many that the agent is
// left without descriptors: 4096, and at most a quarter of what RLIMIT_NOFILE allows. Beyond that,
// connections whose peer has hung up are dropped, the oldest first; if there are none, the newcomer
// is closed: one that has waited longer is no more likely to be a stranger, and a worker that is
// turned away tries again. Lives on the loop's thread.
class EarlyConnections {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // Keeps the connection, or closes it.
  void Add(Socket connection);

  // The connections whose other end has not hung up, in order of arrival. None is kept here.
  std::vector<Socket> Take();

  // Closes all of them.
  void Clear() { waiting_.clear(); }

 private:
  // Checks a few that have gone unchecked for longest, and closes those that have hung up.
  void DropSomeThatHungUp();

  std::deque<Socket> waiting_;
  // Where to look next.
  std::size_t next_look_ = 0;
};

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
