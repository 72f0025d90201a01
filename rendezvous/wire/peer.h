// How gRPC writes the address of the other end of a connection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::rendezvous {

struct Peer {
  std::string address;  // "10.0.0.7", "fe80::1"; empty: it has no IP address
  std::uint16_t port = 0;
};

// "ipv4:10.0.0.7:51234", "ipv6:[fe80::1]:51234", the brackets percent-encoded or not.
Peer ParsePeer(std::string_view text);

}  // namespace muster::rendezvous
