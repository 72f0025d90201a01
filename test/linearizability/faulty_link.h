// The network between one client and the daemon: a relay on a port of 127.0.0.1 that a test can
// block in either direction.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace muster::linearizability {

// What happens to the bytes in one direction.
enum class Flow {
  kPass,
  kHold,  // delayed, and delivered in order when the flow changes to kPass
  kDrop,  // lost; connections that lost some are cut when the flow changes
};

struct Flows {
  Flow to_daemon = Flow::kPass;
  Flow to_client = Flow::kPass;
};

// Used on the loop's thread only. The client's connections are cut when this object is destroyed,
// and when the daemon is gone or refuses them.
class FaultyLink {
 public:
  // Relays connections to port() to `daemon_port` of 127.0.0.1. `loop` must outlive this object.
  FaultyLink(boost::asio::io_context& loop, std::uint16_t daemon_port);
  ~FaultyLink();
  FaultyLink(const FaultyLink&) = delete;
  FaultyLink& operator=(const FaultyLink&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  // Applies to existing and to new connections.
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
