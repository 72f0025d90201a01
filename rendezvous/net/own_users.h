// Whose processes of this machine may come to the workers' store.
#pragma once

#include <boost/asio/ip/tcp.hpp>

namespace muster::rendezvous {

// Processes of this machine are let in when they are this process's user's or root's
// (socket_owner.h). Lives on the loop's thread.
class OwnUsers {
 public:
  // Whether the other end is on another machine, or is one of those. Of others the first is told.
  bool Allow(boost::asio::ip::tcp::socket& connection);

 private:
  bool told_ = false;
};

}  // namespace muster::rendezvous
