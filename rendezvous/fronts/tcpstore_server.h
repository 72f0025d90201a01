// Serves one namespace of c10d's TCPStore protocol: to PyTorch's workers of any version, 1.9 to
// today, on one port.
//
// Whoever can reach the port can read and write everything, and some clients unpickle what is in
// the store, so it is code to them. A server should therefore be bound to as few addresses as
// possible and be told whom to serve (AllowOnly).
//
// Everything runs on the loop's thread. A connection that breaks the protocol or a limit is closed,
// which is the protocol's only way to say no, and a warning says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "rendezvous/fronts/tcpstore_session.h"
#include "rendezvous/net/flood_guard.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

// Who may connect.

// Addresses of hosts that may connect, or everybody.
class TcpStoreAllowList {
 public:
  // Everybody.
  TcpStoreAllowList() = default;
  // Text that is not a numeric address matches nobody.
  explicit TcpStoreAllowList(const std::optional<std::vector<std::string>>& addresses);

  bool Allows(const boost::asio::ip::address& address) const;

 private:
  std::optional<std::set<boost::asio::ip::address>> allowed_;
};

class TcpStoreServer {
 public:
  // `loop` must outlive the server. Handlers that the loop runs after the server's destruction do
  // nothing.
  explicit TcpStoreServer(boost::asio::io_context& loop, const TcpStoreOptions& options = {});
  // As Close.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  // Accepts connections from a listening socket that is bound to an IPv4 or IPv6 address, in
  // addition to those it was given before. Takes over the descriptor, and closes it even on error:
  // InvalidArgument when it is not such a socket.
  absl::Status Serve(int listening_fd);

  // Serves a connection that somebody else accepted and of which nothing has been read. It is
  // closed and counted as refused when it is not allowed, or is one too many.
  void Adopt(boost::asio::ip::tcp::socket connection);

  // Who may connect from now on: numeric addresses. An IPv4 address mapped into IPv6 counts as the
  // IPv4 address, and zones are ignored. nullopt: everybody, as at first. Other connections are
  // closed at once and counted; existing connections that are no longer allowed are closed, too.
  void AllowOnly(const std::optional<std::vector<std::string>>& addresses);

  // Makes a fresh store: drops all keys, queues and waits and closes all connections, so that the
  // next round's workers do not meet the last one's values. Continues to accept connections.
  void Reset();

  // Stops accepting, closes all connections. Idempotent.
  void Close();

  // How many connections were turned away since the beginning.
  std::uint64_t refused() const { return refused_; }
  // How many connections there are.
  std::size_t connections() const { return sessions_.size(); }

 private:
  // False: whoever it is may not connect, and the connection is closed.
  bool StartSession(boost::asio::ip::tcp::socket connection);
  void CloseSessions();

  const TcpStoreOptions options_;

  TcpStoreSessions shared_;
  TcpStoreAllowList allowed_;
  absl::flat_hash_map<TcpStoreSession*, std::shared_ptr<TcpStoreSession>> sessions_;
  std::uint64_t refused_ = 0;
  OwnUsers own_users_;
  FloodGuard flood_guard_;
  PatientAcceptor acceptor_;
};

}  // namespace muster::rendezvous
