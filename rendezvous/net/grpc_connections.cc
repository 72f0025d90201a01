#include "rendezvous/net/grpc_connections.h"

#include <sys/socket.h>

#include <string>

#include <boost/asio/ip/address.hpp>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// As gRPC names it, too: an IPv4 address as one, and a link-local one without the link.
tcp::endpoint Plain(const tcp::endpoint& endpoint) {
  const boost::asio::ip::address& address = endpoint.address();
  if (address.is_v4()) return endpoint;
  const boost::asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return {boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6), endpoint.port()};
  }
  return {boost::asio::ip::address_v6(v6.to_bytes()), endpoint.port()};
}

bool HasPeer(int fd, const tcp::endpoint& peer) {
  tcp::endpoint actual;
  socklen_t size = static_cast<socklen_t>(actual.capacity());
  if (::getpeername(fd, actual.data(), &size) != 0) return false;
  actual.resize(size);
  return Plain(actual) == peer;
}

// gRPC closes descriptors on threads of its own, and may do so between the look and the act. What
// has taken the number by then is no connection, as those are made on this thread; what is none
// takes no harm.
void ShutDown(int fd, const tcp::endpoint& peer) {
  if (HasPeer(fd, peer)) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace

std::size_t GrpcConnections::Add(int fd, const Endpoint& from, std::size_t most) {
  const Endpoint peer = Plain(from);
  // What had the descriptor, or the peer's port, before has ended.
  if (const auto before = by_fd_.find(fd); before != by_fd_.end()) {
    Forget(by_peer_.find(before->second));
  }
  if (const auto before = by_peer_.find(peer); before != by_peer_.end()) Forget(before);

  std::size_t shut_down = 0;
  while (!idle_.empty() && idle_.size() >= most) {
    const auto oldest = Oldest(peer.address());
    ShutDown(oldest->second.fd, oldest->first);
    Forget(oldest);
    ++shut_down;
  }
  const auto added = by_peer_.emplace(peer, Connection{.fd = fd}).first;
  by_fd_.emplace(fd, peer);
  MakeIdle(added);
  return shut_down;
}

std::shared_ptr<void> GrpcConnections::Attend(const Peer& from) {
  boost::system::error_code error;
  const auto address =
      boost::asio::ip::make_address(from.address.substr(0, from.address.find('%')), error);
  if (error) return nullptr;
  const Endpoint peer = Plain({address, from.port});
  const auto connection = by_peer_.find(peer);
  if (connection == by_peer_.end()) return nullptr;
  if (connection->second.agents++ == 0) TakeFromIdle(connection);
  // The peer's port may have come to a newer connection by the time this one is heard to have
  // ended; that has another descriptor, or none of the agents that are counted here.
  return {this, lifetime_.Guard([this, peer, fd = connection->second.fd](GrpcConnections*) {
            const auto found = by_peer_.find(peer);
            if (found == by_peer_.end() || found->second.fd != fd || found->second.agents == 0) {
              return;
            }
            if (--found->second.agents == 0) MakeIdle(found);
          })};
}

void GrpcConnections::MakeIdle(ByPeer::iterator connection) {
  const Turn turn = next_turn_++;
  connection->second.turn = turn;
  idle_.emplace_hint(idle_.end(), turn, connection->first);
  idle_of_[connection->first.address()].insert(turn);
}

void GrpcConnections::TakeFromIdle(ByPeer::iterator connection) {
  idle_.erase(connection->second.turn);
  const auto of_address = idle_of_.find(connection->first.address());
  of_address->second.erase(connection->second.turn);
  if (of_address->second.empty()) idle_of_.erase(of_address);
}

void GrpcConnections::Forget(ByPeer::iterator connection) {
  if (connection->second.agents == 0) TakeFromIdle(connection);
  by_fd_.erase(connection->second.fd);
  by_peer_.erase(connection);
}

GrpcConnections::ByPeer::iterator GrpcConnections::Oldest(
    const boost::asio::ip::address& newcomer) {
  const auto own = idle_of_.find(newcomer);
  const Turn turn = own != idle_of_.end() ? *own->second.begin() : idle_.begin()->first;
  return by_peer_.find(idle_.at(turn));
}

}  // namespace muster::rendezvous
