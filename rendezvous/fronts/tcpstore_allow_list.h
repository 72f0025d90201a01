// Who may connect.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace muster::rendezvous {

// The address of a host in one form: an IPv4 address mapped into IPv6 becomes the IPv4 address, and
// the zone of a link-local address, which names an interface of whoever wrote it, is left out.
boost::asio::ip::address HostAddress(const boost::asio::ip::address& address);

// The same from text; nullopt when it is not a numeric address.
std::optional<boost::asio::ip::address> ParseHostAddress(const std::string& text);

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

}  // namespace muster::rendezvous
