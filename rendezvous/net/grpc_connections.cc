#include "rendezvous/net/grpc_connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <boost/asio/ip/address.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"

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

// gRPC closes descriptors on its own threads, possibly between the check and the shutdown. The
// number cannot be another connection by then, as those are created on this thread; shutdown() does
// not harm anything else.
bool ShutDown(int fd, const tcp::endpoint& peer) {
  return HasPeer(fd, peer) && ::shutdown(fd, SHUT_RDWR) == 0;
}

// How many bytes a TCP connection has received since its start, read or not; 0 if it is not one.
// (tcp(7), TCP_INFO; Linux 4.1.)
std::uint64_t ReceivedBytes(int fd) {
  // The kernel's struct tcp_info (linux/tcp.h) is longer than glibc's: tcpi_bytes_received.
  constexpr std::size_t kOffset = 128;
  std::uint64_t received = 0;
  std::byte info[kOffset + sizeof received] = {};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) != 0 || size < sizeof info) return 0;
  std::memcpy(&received, info + kOffset, sizeof received);
  return received;
}

}  // namespace

std::size_t GrpcConnections::Add(int fd, const Endpoint& from, std::size_t most) {
  const Endpoint peer = HostEndpoint(from);
  // Whatever had the descriptor, or the peer's port, before has ended.
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
  // There may be megabytes, all of which gRPC would process.
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
  // When this one is known to have ended, the peer's port may belong to a newer connection; that
  // one has another descriptor, or counts nothing here.
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

namespace {

using nlohmann::json;

constexpr std::intptr_t kAtOnce = 1000;

// channelz's reply, parsed; null if it has none.
json Parse(char* text) {
  const std::unique_ptr<char, decltype(&gpr_free)> owned(text, &gpr_free);
  if (text == nullptr) return nullptr;
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// channelz writes numbers as text, as protobuf's JSON does for 64 bits. 0: missing.
std::int64_t Number(const json& object, const char* name) {
  std::int64_t number = 0;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return 0;
  return absl::SimpleAtoi(found->get_ref<const std::string&>(), &number) ? number : 0;
}

// "chttp2 ipv4:10.0.0.7:51234"
std::optional<StreamCounts::Endpoint> PeerOf(const json& reference) {
  const auto name = reference.find("name");
  if (name == reference.end() || !name->is_string()) return std::nullopt;
  const std::string_view text = name->get_ref<const std::string&>();
  return HostEndpoint(ParsePeer(text.substr(text.find(' ') + 1)));
}

// Calls `take` with each reference of all pages; a page starts after the last id of the one before.
template <typename ReadPage, typename Take>
void ForEach(const char* list, const char* id, ReadPage read_page, Take take) {
  std::int64_t next = 0;
  for (bool end = false; !end;) {
    const json page = Parse(read_page(next));
    end = true;
    if (!page.is_object() || !page.contains(list)) return;
    for (const json& one : page[list]) {
      const json& reference = one.contains("ref") ? one["ref"] : one;
      next = Number(reference, id) + 1;
      take(Number(reference, id), reference);
    }
    end = page.value("end", false);
  }
}

}  // namespace

void StreamCounts::ReadSockets() {
  sockets_.clear();
  ForEach("server", "serverId", grpc_channelz_get_servers,
          [this](std::int64_t server, const json&) {
            ForEach(
                "socketRef", "socketId",
                [server](std::intptr_t next) {
                  return grpc_channelz_get_server_sockets(server, next, kAtOnce);
                },
                [this](Socket socket, const json& reference) {
                  if (const auto peer = PeerOf(reference)) sockets_[*peer] = socket;
                });
          });
}

std::optional<std::uint64_t> StreamCounts::Begun(const Endpoint& peer) {
  for (const bool again : {false, true}) {
    if (again) ReadSockets();
    const auto socket = sockets_.find(peer);
    if (socket == sockets_.end()) continue;
    const json read = Parse(grpc_channelz_get_socket(socket->second));
    // Its port may belong to another connection now.
    if (!read.is_object() || !read.contains("socket") || PeerOf(read["socket"]["ref"]) != peer) {
      sockets_.erase(socket);
      continue;
    }
    return static_cast<std::uint64_t>(Number(read["socket"]["data"], "streamsStarted"));
  }
  return std::nullopt;
}

}  // namespace muster::rendezvous
