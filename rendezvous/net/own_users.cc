#include "rendezvous/net/own_users.h"

#include <sys/types.h>

#include <utility>

#include <spdlog/spdlog.h>

#include "rendezvous/net/socket_owner.h"

namespace muster::rendezvous {

bool OwnUsers::Allow(boost::asio::ip::tcp::socket& connection) {
  uid_t user = 0;
  if (OwnerOfPeer(connection.native_handle(), &user) != PeerOwner::kOthers) return true;
  if (user != static_cast<uid_t>(-1) && !std::exchange(told_, true)) {
    spdlog::warn(
        "the workers' store has turned away a process of another user of this machine (user id "
        "{}); if your workers run as another user than their agent, use --worker-store=worker",
        user);
  }
  return false;
}

}  // namespace muster::rendezvous
