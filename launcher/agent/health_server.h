// /healthz: whether a run is healthy, for those who look after the machine.
#pragma once

#include <cstdint>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/http/http_server.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {

// Answers whoever asks:
//   GET /healthz         200, as the loop goes round; an agent that stands still does not answer
//   GET /healthz/ready   200 while the workers run, else 503
// and says nothing else: no name, no version, no reason. Anything else is 404, 405 or 400. Lives on
// the loop's thread.
class HealthServer {
 public:
  // As rendezvous::HttpServer::Open.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Open(boost::asio::io_context& io,
                                                            const rendezvous::Endpoint& endpoint);

  // Whether the workers run; not before this is first called.
  void ShowReady(bool ready) { ready_ = ready; }

  std::uint16_t port() const { return server_->port(); }

 private:
  HealthServer() = default;

  rendezvous::HttpAnswer AnswerTo(const rendezvous::HttpRequest& request) const;

  bool ready_ = false;
  std::unique_ptr<rendezvous::HttpServer> server_;
};

}  // namespace muster::launcher
