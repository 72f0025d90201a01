// The workers' store of another node, as the workers of this one reach it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"

#include "base/async/timer.h"
#include "proto/tunnel.pb.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/peer.h"
#include "rendezvous/wire/worker_wire.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace muster::rendezvous {

struct TunnelClientOptions {
  // Where the agent is that has the store, and serves a tunnel to it (tunnel_server.h).
  Endpoint store;
  Credentials credentials = Credentials::Plaintext();
  TunnelRound round;
};

// Takes the connections of this node's workers, of this process's user alone, and carries each over
// a stream of its own to the agent that has their store: all of them over one connection, which is
// made for the first. A worker may come long before that agent is ready; it waits. When the other
// end or the way there breaks, the workers' connections are reset.
//
// For one round; lives on the loop's thread.
class TunnelClient {
 public:
  TunnelClient(boost::asio::io_context& io, TunnelClientOptions options);
  // Resets all connections, and closes the listening sockets.
  ~TunnelClient();
  TunnelClient(const TunnelClient&) = delete;
  TunnelClient& operator=(const TunnelClient&) = delete;

  // Accepts workers from a listening socket. As PatientAcceptor::Serve.
  absl::Status Serve(int listening_fd) { return acceptor_.Serve(listening_fd); }

  // Connections of workers.
  std::size_t connections() const { return streams_.size(); }
  // Processes of other users that were turned away.
  std::uint64_t refused() const { return refused_; }

 private:
  class Stream;
  struct Line;

  void Take(boost::asio::ip::tcp::socket worker);
  void OnAnswered();
  void OnDone(Stream* stream, const grpc::Status& status);
  // Says, once, why nobody answers yet.
  void AskWhy();

  boost::asio::io_context& io_;
  const TunnelClientOptions options_;
  tunnel::v1::Open open_;
  std::vector<char> buffer_;

  std::unique_ptr<Line> line_;  // from the first worker on
  std::map<Stream*, std::unique_ptr<Stream>> streams_;
  OwnUsers own_users_{
      "if your workers run as another user than their agent, use --worker-store=worker"};
  std::uint64_t refused_ = 0;
  bool answered_ = false;
  bool told_ = false;  // that a worker's connection was refused, or waits
  base::Timer patience_;
  PatientAcceptor acceptor_;
};

}  // namespace muster::rendezvous
