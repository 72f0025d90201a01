// Keeps away hosts whose connections come to nothing, before they cost anything.
#pragma once

#include <functional>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "rendezvous/net/floods.h"

namespace muster::rendezvous {

// To accept a connection and to close it takes some 50 us, so a host that does nothing else takes a
// third of a processor with a few thousand of them in a second. Here the kernel is told to drop
// what such a host sends to begin a connection (floods.h says which host, syn_filter.h how).
// Connections between the addresses of this machine are not touched.
//
// Lives on the loop's thread.
class FloodGuard {
 public:
  using Address = boost::asio::ip::address;

  // Says which sockets listen. Called whenever that matters.
  using Sockets = std::function<std::vector<int>()>;
  // `name` says in the log what the hosts connect to.
  FloodGuard(boost::asio::io_context& io, const char* name, Sockets sockets,
             FloodLimits limits = {});
  FloodGuard(const FloodGuard&) = delete;
  FloodGuard& operator=(const FloodGuard&) = delete;

  // The sockets listen. Whom a former process kept away from them, as the keeper of a port holds
  // them longer, may come again.
  void Begin() { Apply(); }
  // A connection from `peer` was accepted.
  void Accepted(const boost::asio::ip::tcp::socket& connection, const Address& peer);
  // A connection from there has come to nothing.
  void Failed(const Address& peer);
  // Somebody there has the secret.
  void Known(const Address& peer);

 private:
  // False: the kernel does not do it.
  bool Apply();
  void AwaitRelease();

  const char* const name_;
  const Sockets sockets_;
  Floods floods_;
  boost::asio::steady_timer release_;
  bool awaits_release_ = false;
  TimePoint told_{};
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
