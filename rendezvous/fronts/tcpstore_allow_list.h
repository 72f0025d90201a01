// Who may connect.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace muster::rendezvous {

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
