// Sockets that listen at an endpoint.
#pragma once

#include <cstdint>
#include <vector>

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

// Listens at every address that the endpoint's host has on this machine, all with one port; port 0
// takes a free one. "0.0.0.0" and "::" mean every address of both families, if the kernel has both.
// Connections of a former process in TIME_WAIT are not in the way (SO_REUSEADDR); two processes
// never share the port. Returns at least one socket. On error none is left open: AlreadyExists when
// another process has the port, else the cause: "listen on 10.0.0.1:80: Permission denied".
//
// May wait for DNS when the host is a name, and half a second when the port's holder does not close
// a connection that it cannot understand: the last word of a dead rendezvous makes room when it is
// asked to (keeper/last_word.h).
absl::StatusOr<std::vector<boost::asio::ip::tcp::acceptor>> ListenAt(boost::asio::io_context& io,
                                                                     const Endpoint& endpoint);

// The same, but the sockets do not listen yet: whoever connects is refused at once, until
// SO_REUSEADDR is set and `listen` called on each. Meanwhile no other process takes the port,
// unless connections of a former process on it are in TIME_WAIT.
absl::StatusOr<std::vector<boost::asio::ip::tcp::acceptor>> BindAt(boost::asio::io_context& io,
                                                                   const Endpoint& endpoint);

// An inherited socket that is already listening.
boost::asio::ip::tcp::acceptor AcceptorOf(boost::asio::io_context& io, int fd);

// The port of such sockets.
std::uint16_t PortOf(const std::vector<boost::asio::ip::tcp::acceptor>& sockets);

}  // namespace muster::rendezvous
