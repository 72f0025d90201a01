// How many streams gRPC has begun over a connection, whatever became of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include <boost/asio/ip/tcp.hpp>

namespace muster::rendezvous {

// As gRPC's channelz tells it (grpc/grpc.h, grpc_channelz_get_socket; gRFC A14): the only place
// where a call can be seen that gRPC refuses by itself, because it has no method, say. One question
// takes some 50 us, and the first one after a connection that is not known yet another for each
// connection there is.
//
// Lives on one thread.
class StreamCounts {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  // Of the connection from there (HostEndpoint), since it began. nullopt: there is none.
  std::optional<std::uint64_t> Begun(const Endpoint& peer);

 private:
  using Socket = std::int64_t;  // channelz's name for it

  void ReadSockets();

  std::map<Endpoint, Socket> sockets_;
};

}  // namespace muster::rendezvous
