// Sockets that listen at an endpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/async/timer.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

// Listens at every address that the endpoint's host has on this machine, all with one port; port 0
// picks a free one. "0.0.0.0" and "::" mean every address of both families, if the kernel has both.
// A former process' connections in TIME_WAIT do not block it (SO_REUSEADDR); two processes never
// share the port. Returns at least one socket. On error all are closed: AlreadyExists when another
// process has the port, else the cause: "listen on 10.0.0.1:80: Permission denied".
//
// May wait for DNS when the host is a name, and half a second when the port's holder does not close
// a connection it cannot understand: the port holder of a dead rendezvous leaves the port when
// asked (keeper/port_holder.h).
absl::StatusOr<std::vector<boost::asio::ip::tcp::acceptor>> ListenAt(boost::asio::io_context& io,
                                                                     const Endpoint& endpoint);

// The same, but the sockets do not listen yet: connections are refused until SO_REUSEADDR is set
// and `listen` called on each. Meanwhile no other process can take the port, unless connections of
// a former process on it are in TIME_WAIT.
absl::StatusOr<std::vector<boost::asio::ip::tcp::acceptor>> BindAt(boost::asio::io_context& io,
                                                                   const Endpoint& endpoint);

// An inherited socket that is already listening.
boost::asio::ip::tcp::acceptor AcceptorOf(boost::asio::io_context& io, int fd);

// The port of such sockets.
std::uint16_t PortOf(const std::vector<boost::asio::ip::tcp::acceptor>& sockets);

// Accepts connections, as many as there is room for.

// Connections beyond that, or without a file descriptor, wait in the kernel's queue. Lives on the
// loop's thread.
class PatientAcceptor {
 public:
  // `peer` is known even if the connection has been reset meanwhile.
  using Take =
      std::function<void(boost::asio::ip::tcp::socket, const boost::asio::ip::address& peer)>;

  // `take` is called with each connection, and must not destroy this. `has_room` is called before
  // each: once it has returned false, call Resume when there is room again. `loop` must outlive
  // this; handlers that it runs later do nothing.
  PatientAcceptor(boost::asio::io_context& loop, Take take, std::function<bool()> has_room);

  // Also accepts from a listening socket bound to an IPv4 or IPv6 address. Takes over the
  // descriptor, and closes it even on error: InvalidArgument when it is not such a socket.
  absl::Status Serve(int listening_fd);

  // A connection has ended, so there may be room.
  void Resume();

  // The listening sockets.
  std::vector<int> listening_fds() const;

  // Closes the listening sockets. Idempotent.
  void Close();

 private:
  struct Listener {
    boost::asio::posix::stream_descriptor socket;
    int family = 0;
    bool awaits = false;  // for a connection
  };

  void AwaitConnection(const std::shared_ptr<Listener>& listener);
  void AcceptSome(const std::shared_ptr<Listener>& listener);
  // Stops accepting until a connection closes, or for a while: other parts of the process may free
  // descriptors, too.
  void WaitForFiles(int error);
  void Admit(int fd, int family, const boost::asio::ip::address& peer);

  boost::asio::io_context& loop_;
  const Take take_;
  const std::function<bool()> has_room_;
  // Shared only with their handlers, which can tell by it that the socket was closed.
  std::vector<std::shared_ptr<Listener>> listeners_;
  bool out_of_files_ = false;  // and that has been said
  base::Timer retry_;
};

}  // namespace muster::rendezvous
