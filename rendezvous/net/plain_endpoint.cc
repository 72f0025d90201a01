#include "rendezvous/net/plain_endpoint.h"

#include <boost/asio/ip/address.hpp>

namespace muster::rendezvous {

using boost::asio::ip::tcp;

tcp::endpoint PlainEndpoint(const tcp::endpoint& endpoint) {
  const boost::asio::ip::address& address = endpoint.address();
  if (address.is_v4()) return endpoint;
  const boost::asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return {boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6), endpoint.port()};
  }
  return {boost::asio::ip::address_v6(v6.to_bytes()), endpoint.port()};
}

std::optional<tcp::endpoint> EndpointOf(const Peer& peer) {
  boost::system::error_code error;
  const auto address =
      boost::asio::ip::make_address(peer.address.substr(0, peer.address.find('%')), error);
  if (error) return std::nullopt;
  return PlainEndpoint({address, peer.port});
}

}  // namespace muster::rendezvous
