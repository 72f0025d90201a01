// What we know about the connections handed to gRPC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/lifetime.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

// A connection that speaks HTTP/2 belongs to gRPC, and only gRPC knows when it ends. But one that
// is opened and then stays silent must not keep an agent out. So we remember its descriptor and its
// peer: only we accept connections, so the two belong together for as long as the descriptor has
// that peer.
//
// A connection on which no agent attends and no call waits is idle. Their number is limited: beyond
// it, the oldest from the newcomer's address is dropped, or the oldest of all if that address has
// no other. So an address that opens many connections displaces only its own, and an agent at that
// address has until that many others have come; attending takes it a few milliseconds. A connection
// on which an agent attends or a call waits is never touched; connections with waiting calls are
// limited, too, but there the newcomer is refused.
//
// Lives on the loop's thread.
class GrpcConnections {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  GrpcConnections() = default;
  GrpcConnections(const GrpcConnections&) = delete;
  GrpcConnections& operator=(const GrpcConnections&) = delete;

  // A new connection is about to be handed to gRPC. It counts as idle; if there are more than
  // `most` idle connections, itself included, others are shut down, which gRPC sees as their end.
  // Returns how many.
  std::size_t Add(int fd, const Endpoint& from, std::size_t most);

  // An agent attends on the connection from `peer` until the last copy of the result is gone, which
  // may be after this object. Null if there is no such connection.
  std::shared_ptr<void> Attend(const Peer& peer);

  // A call from `peer` waits, likewise. nullopt if calls already wait on `most` other connections.
  std::optional<std::shared_ptr<void>> Wait(const Peer& peer, std::size_t most);

  // Shuts down the connection from `peer`, if there is one, and discards its unread bytes.
  void Drop(const Peer& peer);

  // This many more calls have been seen on the connection from `peer`.
  void Heard(const Endpoint& peer, std::uint64_t calls);
  // Checks the next `most` connections, in turn. Returns those that have received at least `bytes`
  // bytes since they were last returned, each with its number of calls seen. Forgets connections
  // that have ended.
  std::vector<std::pair<Endpoint, std::uint64_t>> TakeBusy(std::uint64_t bytes, std::size_t most);

  // Connections not known to have ended.
  std::size_t size() const { return by_peer_.size(); }
  // Connections on which calls wait.
  std::size_t waiting() const { return waiting_; }
  // Idle connections, including ended ones that have not been noticed.
  std::size_t idle() const { return idle_.size(); }

 private:
  // In the order in which they became idle.
  using Turn = std::uint64_t;
  struct Connection {
    int fd = -1;
    std::size_t agents = 0;
    std::size_t waits = 0;
    Turn turn = 0;            // set while it is idle
    std::uint64_t calls = 0;  // seen so far
    std::uint64_t bytes = 0;  // received when it was last busy

    bool idle() const { return agents == 0 && waits == 0; }
  };
  using ByPeer = std::map<Endpoint, Connection>;

  ByPeer::iterator Find(const Peer& peer);
  // Increments `count` until the last copy of the result is gone.
  std::shared_ptr<void> Hold(ByPeer::iterator connection, std::size_t Connection::*count);
  // Adds `by` to such a count.
  void Change(ByPeer::iterator connection, std::size_t Connection::*count, int by);
  void MakeIdle(ByPeer::iterator connection);
  void TakeFromIdle(ByPeer::iterator connection);
  void Forget(ByPeer::iterator connection);
  // The connection that makes room for a newcomer.
  ByPeer::iterator Oldest(const boost::asio::ip::address& newcomer);

  ByPeer by_peer_;
  Endpoint looked_at_;  // last one checked
  std::map<int, Endpoint> by_fd_;
  std::map<Turn, Endpoint> idle_;
  std::map<boost::asio::ip::address, std::set<Turn>> idle_of_;
  Turn next_turn_ = 0;
  std::size_t waiting_ = 0;
  base::Lifetime lifetime_;
};

// How many streams gRPC has begun on a connection, in whatever state they are.

// From gRPC's channelz (grpc/grpc.h, grpc_channelz_get_socket; gRFC A14), the only place that shows
// the calls gRPC refuses by itself, for instance because they have no method. A query takes about
// 50 us; the first one about an unknown connection costs another 50 us per connection.
//
// Lives on one thread.
class StreamCounts {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  // For the connection from `peer` (HostEndpoint), since its start. nullopt: there is none.
  std::optional<std::uint64_t> Begun(const Endpoint& peer);

 private:
  using Socket = std::int64_t;  // channelz's name for it

  void ReadSockets();

  std::map<Endpoint, Socket> sockets_;
};

}  // namespace muster::rendezvous
