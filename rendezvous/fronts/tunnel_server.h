// The workers' store of this node, as the agents of others reach it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "proto/tunnel.pb.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/wire/tunnel_round.h"

namespace muster::rendezvous {

// A port that speaks TLS alone, with those who prove what the credentials ask for: agents, whose
// workers' connections are carried to a store on this machine (tunnel_client.h is their end). It
// has the rendezvous' protection against everybody else (shared_port.h).
//
// gRPC's threads are started with the first round. Lives on the loop's thread.
class TunnelServer {
 public:
  TunnelServer(boost::asio::io_context& io, Credentials credentials);
  // Stops, and runs the loop until everything has ended, unless that is over already.
  ~TunnelServer();
  TunnelServer(const TunnelServer&) = delete;
  TunnelServer& operator=(const TunnelServer&) = delete;

  // Serves the tunnel of this round to the store at `store`, on sockets as ListenAt makes them. The
  // round before ends. Unavailable when gRPC cannot start.
  absl::Status BeginRound(TunnelRound round, std::vector<boost::asio::ip::tcp::acceptor> sockets,
                          const boost::asio::ip::tcp::endpoint& store);

  // Resets all connections, and closes the port.
  void EndRound();

  // Ends everything; `stopped` is called from the loop. May be called again.
  void Stop(std::function<void()> stopped);

  // Workers' connections.
  std::size_t streams() const;
  // Calls that were refused, and connections that came to none, since the beginning.
  std::uint64_t refused() const;

 private:
  struct Parts;

  boost::asio::io_context& io_;
  const Credentials credentials_;
  std::unique_ptr<Parts> parts_;  // from the first round until it has stopped
};

// The gRPC face of a tunnel: proto/tunnel.proto's service in front of the workers' store.

// Relays each stream to a connection of its own to the store, which is on this machine. Lives on
// the loop's thread. `io` and the router must outlive the front, and the front the grpc::Server
// that the router is registered with.
class TunnelFront final {
 public:
  // What the front asks its server, on the loop and while the call is open.
  struct Gate {
    // Returns something to hold while the call is under way.
    std::function<std::shared_ptr<void>(const grpc::CallbackServerContext&)> hold;
    // A caller was refused for another reason: "asks for ...".
    std::function<void(const grpc::CallbackServerContext&, const std::string& what)> complain;
  };

  TunnelFront(boost::asio::io_context& io, RpcRouter& router, Gate gate);
  ~TunnelFront();
  TunnelFront(const TunnelFront&) = delete;
  TunnelFront& operator=(const TunnelFront&) = delete;

  // From now on carries connections for this round, to the store at `store`.
  void BeginRound(TunnelRound round, const boost::asio::ip::tcp::endpoint& store);
  // Cuts all streams; whoever comes until the next round is refused.
  void EndRound();

  std::size_t streams() const { return streams_.size(); }

 private:
  class Stream;

  // A connection to the store for a stream that begins with this, not connected yet.
  absl::StatusOr<boost::asio::ip::tcp::socket> Admit(const tunnel::v1::Open& open) const;

  boost::asio::io_context& io_;
  RpcRouter& router_;
  const Gate gate_;
  std::optional<TunnelRound> round_;
  boost::asio::ip::tcp::endpoint store_;
  std::set<Stream*> streams_;
  std::vector<char> buffer_;
};

}  // namespace muster::rendezvous
