// The connections that gRPC was given, as far as we know about them.
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
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// A connection that has begun to speak HTTP/2 is gRPC's, and only gRPC knows when it ends. But one
// that is opened and then says nothing more must not keep an agent out. So we remember its
// descriptor number and its peer: as only we accept connections, the two belong together for as
// long as that descriptor has that peer.
//
// A connection over which no agent attends and no call waits is idle. The number of these is
// limited: beyond it, the oldest from the newcomer's address is dropped, or the oldest of all if
// that address has no other. So a single address that opens many connections displaces only its
// own, and an agent at the same address has until that many others have come; it takes a few
// milliseconds to attend. A connection over which an agent attends or a call waits is never
// touched; the number of the latter is limited, too, but there the newcomer is refused.
//
// Lives on the loop's thread.
class GrpcConnections {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  GrpcConnections() = default;
  GrpcConnections(const GrpcConnections&) = delete;
  GrpcConnections& operator=(const GrpcConnections&) = delete;

  // A new connection is about to be handed to gRPC. It is idle, and at most `most` idle connections
  // remain, itself included: others are shut down, which gRPC takes for their end. Returns how many
  // were.
  std::size_t Add(int fd, const Endpoint& from, std::size_t most);

  // An agent attends over the connection from `peer`, until the last copy of the result is gone;
  // that may be after this object. Null for a peer that has no connection here.
  std::shared_ptr<void> Attend(const Peer& peer);

  // A call from `peer` waits, likewise. nullopt when calls wait over `most` other connections
  // already.
  std::optional<std::shared_ptr<void>> Wait(const Peer& peer, std::size_t most);

  // Ends the connection from there, if there is one: gRPC takes it for its end. What has come over
  // it and has not been read is thrown away.
  void Drop(const Peer& peer);

  // So many more calls have come over the connection from there than were known of before.
  void Heard(const Endpoint& peer, std::uint64_t calls);
  // Looks at the next `most` connections, in turn: those over which so many bytes or more have come
  // since they were last returned here, each with the calls that were heard of. Forgets those that
  // have ended.
  std::vector<std::pair<Endpoint, std::uint64_t>> TakeBusy(std::uint64_t bytes, std::size_t most);

  // Connections that have not ended as far as we know.
  std::size_t size() const { return by_peer_.size(); }
  // The number of connections over which calls wait.
  std::size_t waiting() const { return waiting_; }
  // The number of idle connections, including those that have ended without our noticing.
  std::size_t idle() const { return idle_.size(); }

 private:
  // In the order in which they became idle.
  using Turn = std::uint64_t;
  struct Connection {
    int fd = -1;
    std::size_t agents = 0;
    std::size_t waits = 0;
    Turn turn = 0;            // while it is idle
    std::uint64_t calls = 0;  // heard of
    std::uint64_t bytes = 0;  // received by the time it was busy last

    bool idle() const { return agents == 0 && waits == 0; }
  };
  using ByPeer = std::map<Endpoint, Connection>;

  ByPeer::iterator Find(const Peer& peer);
  // Counts one more of its agents or waits, until the last copy of the result is gone.
  std::shared_ptr<void> Hold(ByPeer::iterator connection, std::size_t Connection::*count);
  // Changes such a count.
  void Change(ByPeer::iterator connection, std::size_t Connection::*count, int by);
  void MakeIdle(ByPeer::iterator connection);
  void TakeFromIdle(ByPeer::iterator connection);
  void Forget(ByPeer::iterator connection);
  // The connection that has to make room for a newcomer.
  ByPeer::iterator Oldest(const boost::asio::ip::address& newcomer);

  ByPeer by_peer_;
  Endpoint looked_at_;  // last
  std::map<int, Endpoint> by_fd_;
  std::map<Turn, Endpoint> idle_;
  std::map<boost::asio::ip::address, std::set<Turn>> idle_of_;
  Turn next_turn_ = 0;
  std::size_t waiting_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
