#include "rendezvous/net/host_address.h"

#include <algorithm>

namespace muster::rendezvous {

using boost::asio::ip::address;
using boost::asio::ip::tcp;

address HostAddress(const address& given) {
  if (!given.is_v6()) return given;
  boost::asio::ip::address_v6 v6 = given.to_v6();
  if (v6.is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6);
  }
  v6.scope_id(0);
  return v6;
}

std::optional<address> ParseHostAddress(const std::string& text) {
  boost::system::error_code error;
  // The zone may be one that this machine does not have.
  const address parsed = boost::asio::ip::make_address(text.substr(0, text.find('%')), error);
  if (error) return std::nullopt;
  return HostAddress(parsed);
}

address HostLine(const address& host) {
  if (host.is_v4()) return host;
  boost::asio::ip::address_v6::bytes_type bytes = host.to_v6().to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), 0);
  return boost::asio::ip::address_v6(bytes);
}

tcp::endpoint HostEndpoint(const tcp::endpoint& endpoint) {
  return {HostAddress(endpoint.address()), endpoint.port()};
}

std::optional<tcp::endpoint> HostEndpoint(const Peer& peer) {
  const std::optional<address> host = ParseHostAddress(peer.address);
  if (!host) return std::nullopt;
  return tcp::endpoint(*host, peer.port);
}

}  // namespace muster::rendezvous
