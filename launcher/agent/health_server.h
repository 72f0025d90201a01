// /healthz: whether a run is healthy, for those who look after the machine.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/patient_acceptor.h"

namespace muster::launcher {

// Answers whoever asks, over HTTP/1.1 and one request for each connection:
//   GET /healthz         200, as the loop goes round; an agent that stands still does not answer
//   GET /healthz/ready   200 while the workers run, else 503
// and says nothing else: no name, no version, no reason. Anything else is 404, 405 or 400. A
// stranger can hold up nobody: a connection has five seconds and 4 KiB for its request, and when
// there are 16 the oldest makes room for a new one. Lives on the loop's thread; handlers that the
// loop runs later do nothing.
class HealthServer {
 public:
  // Listens from now on; port 0 takes a free one. May wait for DNS when the host is a name. The
  // error is one sentence. `io` must outlive the server.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Open(boost::asio::io_context& io,
                                                            const rendezvous::Endpoint& endpoint);

  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  // Whether the workers run; not before this is first called.
  void ShowReady(bool ready) { ready_ = ready; }

  std::uint16_t port() const { return port_; }

 private:
  class Connection;

  explicit HealthServer(boost::asio::io_context& io);

  void Take(boost::asio::ip::tcp::socket socket);

  bool ready_ = false;
  std::uint16_t port_ = 0;
  // The oldest first.
  std::list<std::shared_ptr<Connection>> connections_;
  rendezvous::PatientAcceptor acceptor_;
};

}  // namespace muster::launcher
