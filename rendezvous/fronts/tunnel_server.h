// The workers' store of this node, as the agents of others reach it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"

#include "rendezvous/net/credentials.h"
#include "rendezvous/wire/worker_wire.h"

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

}  // namespace muster::rendezvous
