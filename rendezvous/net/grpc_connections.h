// The connections that gRPC was given, as far as we know of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include <boost/asio/ip/tcp.hpp>

#include "base/lifetime.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// A connection that has begun to speak HTTP/2 is gRPC's, and only gRPC knows when it ends. But
// whoever opens one and then says nothing more must not keep an agent out. So we remember the
// number of its descriptor and its peer: as only we accept connections, the two belong together for
// as long as that descriptor has that peer.
//
// A connection over which no agent attends is idle. There may be only so many of these: of more the
// oldest of the newcomer's address goes, or the oldest of all if that address has no other. A
// single address, whatever it opens, thus displaces what it has opened itself, and an agent of the
// same address has the time until so many others have come; it takes a few milliseconds to attend.
// One over which an agent attends is never touched.
//
// Lives on the loop's thread.
class GrpcConnections {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  GrpcConnections() = default;
  GrpcConnections(const GrpcConnections&) = delete;
  GrpcConnections& operator=(const GrpcConnections&) = delete;

  // This one is about to be given away. It is idle, and leaves `most` such connections at most (it
  // is one of them): others are shut down, which gRPC takes for their end. How many were.
  std::size_t Add(int fd, const Endpoint& from, std::size_t most);

  // An agent attends over the connection that comes from `peer`, until the last copy of what is
  // returned has gone; that may be after us. Null for a peer that has no connection here.
  std::shared_ptr<void> Attend(const Peer& peer);

  // Those that are idle, and those that have ended without our having noticed.
  std::size_t idle() const { return idle_.size(); }

 private:
  // By order of becoming idle.
  using Turn = std::uint64_t;
  struct Connection {
    int fd = -1;
    std::size_t agents = 0;
    Turn turn = 0;  // while it is idle
  };
  using ByPeer = std::map<Endpoint, Connection>;

  void MakeIdle(ByPeer::iterator connection);
  void TakeFromIdle(ByPeer::iterator connection);
  void Forget(ByPeer::iterator connection);
  // The one that has to make room for a newcomer.
  ByPeer::iterator Oldest(const boost::asio::ip::address& newcomer);

  ByPeer by_peer_;
  std::map<int, Endpoint> by_fd_;
  std::map<Turn, Endpoint> idle_;
  std::map<boost::asio::ip::address, std::set<Turn>> idle_of_;
  Turn next_turn_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
