#include "rendezvous/net/grpc_connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <string>

#include <boost/asio/ip/address.hpp>

#include "rendezvous/net/host_address.h"
#include "rendezvous/net/received_bytes.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

bool HasPeer(int fd, const tcp::endpoint& peer) {
  tcp::endpoint actual;
  socklen_t size = static_cast<socklen_t>(actual.capacity());
  if (::getpeername(fd, actual.data(), &size) != 0) return false;
  actual.resize(size);
  return HostEndpoint(actual) == peer;
}

// gRPC closes descriptors on threads of its own, and may do so between the look and the act. What
// has taken the number by then is no connection, as those are made on this thread; what is none
// takes no harm.
bool ShutDown(int fd, const tcp::endpoint& peer) {
  return HasPeer(fd, peer) && ::shutdown(fd, SHUT_RDWR) == 0;
}

}  // namespace

std::size_t GrpcConnections::Add(int fd, const Endpoint& from, std::size_t most) {
  const Endpoint peer = HostEndpoint(from);
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

std::shared_ptr<void> GrpcConnections::Attend(const Peer& peer) {
  const auto connection = Find(peer);
  return connection == by_peer_.end() ? nullptr : Hold(connection, &Connection::agents);
}

std::optional<std::shared_ptr<void>> GrpcConnections::Wait(const Peer& peer, std::size_t most) {
  const auto connection = Find(peer);
  if (connection == by_peer_.end()) return nullptr;
  if (connection->second.waits == 0 && waiting_ >= most) return std::nullopt;
  return Hold(connection, &Connection::waits);
}

void GrpcConnections::Drop(const Peer& peer) {
  const auto connection = Find(peer);
  if (connection == by_peer_.end()) return;
  const int fd = connection->second.fd;
  if (!ShutDown(fd, connection->first)) return;
  // Megabytes of it may be there, and gRPC would go through them all.
  while (::recv(fd, nullptr, 1 << 20, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

void GrpcConnections::Heard(const Endpoint& peer, std::uint64_t calls) {
  const auto connection = by_peer_.find(peer);
  if (connection != by_peer_.end()) connection->second.calls += calls;
}

std::vector<std::pair<GrpcConnections::Endpoint, std::uint64_t>> GrpcConnections::TakeBusy(
    std::uint64_t bytes, std::size_t most) {
  std::vector<std::pair<Endpoint, std::uint64_t>> busy;
  for (std::size_t left = std::min(most, by_peer_.size()); left > 0; --left) {
    auto connection = by_peer_.upper_bound(looked_at_);
    if (connection == by_peer_.end()) connection = by_peer_.begin();
    looked_at_ = connection->first;
    const int fd = connection->second.fd;
    if (!HasPeer(fd, connection->first)) {
      Forget(connection);
      continue;
    }
    const std::uint64_t received = ReceivedBytes(fd);
    if (received < connection->second.bytes + bytes) continue;
    connection->second.bytes = received;
    busy.emplace_back(connection->first, connection->second.calls);
  }
  return busy;
}

GrpcConnections::ByPeer::iterator GrpcConnections::Find(const Peer& peer) {
  const std::optional<Endpoint> endpoint = HostEndpoint(peer);
  return endpoint ? by_peer_.find(*endpoint) : by_peer_.end();
}

std::shared_ptr<void> GrpcConnections::Hold(ByPeer::iterator connection,
                                            std::size_t Connection::*count) {
  Change(connection, count, 1);
  // The peer's port may have come to a newer connection by the time this one is heard to have
  // ended; that has another descriptor, or none of what is counted here.
  return {this, lifetime_.Guard([this, count, peer = connection->first,
                                 fd = connection->second.fd](GrpcConnections*) {
            const auto found = by_peer_.find(peer);
            if (found == by_peer_.end() || found->second.fd != fd || found->second.*count == 0) {
              return;
            }
            Change(found, count, -1);
          })};
}

void GrpcConnections::Change(ByPeer::iterator connection, std::size_t Connection::*count, int by) {
  const Connection before = connection->second;
  connection->second.*count += by;
  const Connection& now = connection->second;
  if (before.waits == 0 && now.waits != 0) ++waiting_;
  if (before.waits != 0 && now.waits == 0) --waiting_;
  if (before.idle() && !now.idle()) TakeFromIdle(connection);
  if (!before.idle() && now.idle()) MakeIdle(connection);
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
  if (connection->second.idle()) TakeFromIdle(connection);
  if (connection->second.waits != 0) --waiting_;
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
