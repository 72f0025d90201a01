// The network between one client and the daemon: a relay on a port of 127.0.0.1 that a test makes
// deaf or dumb in either direction.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace muster::linearizability {

// What becomes of the bytes of one direction.
enum class Flow {
  kPass,
  kHold,  // they wait and are delivered, late and in order, when the flow is changed to kPass
  kDrop,  // they are lost; connections that have lost some are cut when the flow is changed
};

struct Flows {
  Flow to_daemon = Flow::kPass;
  Flow to_client = Flow::kPass;
};

// Belongs to the loop's thread. Connections that its client has made are cut with this object, and
// when the daemon is gone or refuses them.
class FaultyLink {
 public:
  // Relays what connects to port() to that port of 127.0.0.1. `loop` must outlive it.
  FaultyLink(boost::asio::io_context& loop, std::uint16_t daemon_port);
  ~FaultyLink();
  FaultyLink(const FaultyLink&) = delete;
  FaultyLink& operator=(const FaultyLink&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  // For connections that there are and those to come.
  void SetFlows(const Flows& flows);

 private:
  class Connection;

  void Accept();

  boost::asio::io_context& loop_;
  const std::uint16_t daemon_port_;
  boost::asio::ip::tcp::acceptor acceptor_;
  Flows flows_;
  std::vector<std::shared_ptr<Connection>> connections_;
};

}  // namespace muster::linearizability
