// Peers as gRPC names them and as the kernel does, made comparable.
#pragma once

#include <optional>

#include <boost/asio/ip/tcp.hpp>

#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// An IPv4 address as one where IPv6 wraps it, and a link-local one without its link, as gRPC has
// it.
boost::asio::ip::tcp::endpoint PlainEndpoint(const boost::asio::ip::tcp::endpoint& endpoint);

// nullopt: it has no IP address.
std::optional<boost::asio::ip::tcp::endpoint> EndpointOf(const Peer& peer);

}  // namespace muster::rendezvous
