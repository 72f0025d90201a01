// Addresses of hosts as text, the kernel and gRPC have them, made comparable.
#pragma once

#include <optional>
#include <string>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// The address of a host in one form: an IPv4 address mapped into IPv6 becomes the IPv4 address, and
// the zone of a link-local address, which names an interface of whoever wrote it, is left out.
boost::asio::ip::address HostAddress(const boost::asio::ip::address& address);

// The same from text; nullopt when it is not a numeric address.
std::optional<boost::asio::ip::address> ParseHostAddress(const std::string& text);

// What counts as one host: an IPv4 address, or the /64 of an IPv6 one, which a host has whole. The
// address as HostAddress makes it.
boost::asio::ip::address HostLine(const boost::asio::ip::address& address);

// A HostAddress with a port.
boost::asio::ip::tcp::endpoint HostEndpoint(const boost::asio::ip::tcp::endpoint& endpoint);

// nullopt: it has no IP address.
std::optional<boost::asio::ip::tcp::endpoint> HostEndpoint(const Peer& peer);

}  // namespace muster::rendezvous
