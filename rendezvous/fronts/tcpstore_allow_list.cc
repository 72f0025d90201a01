#include "rendezvous/fronts/tcpstore_allow_list.h"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>

namespace muster::rendezvous {

using boost::asio::ip::address;

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

TcpStoreAllowList::TcpStoreAllowList(const std::optional<std::vector<std::string>>& addresses) {
  if (!addresses) return;
  allowed_.emplace();
  for (const std::string& text : *addresses) {
    if (const std::optional<address> parsed = ParseHostAddress(text)) allowed_->insert(*parsed);
  }
}

bool TcpStoreAllowList::Allows(const address& given) const {
  return !allowed_ || allowed_->contains(HostAddress(given));
}

}  // namespace muster::rendezvous
