#include "rendezvous/fronts/tcpstore_allow_list.h"

#include "rendezvous/net/host_address.h"

namespace muster::rendezvous {

using boost::asio::ip::address;

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
