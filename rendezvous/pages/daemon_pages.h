// What a daemon shows over HTTP (musterd --http): its jobs, as JSON, and figures, as metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/http/http_server.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/server.h"

namespace muster::rendezvous {

// Answers
//   GET /healthz             200, to whoever asks, as the loop goes round
//   GET /readyz              200, to whoever asks; 503 once the daemon takes no new nodes
//   GET /metrics             for Prometheus
//   GET /api/v1/jobs         an array of jobs (job_json.h)
//   GET /api/v1/jobs/RUN_ID  one of them, or 404
// The last three take `Authorization: Bearer TOKEN`, where TOKEN is what a token file holds: the
// daemon's, a tenant's, or the one that `muster token metrics` makes of it, with which nothing else
// can be done. A tenant is shown his own jobs. Without a token (--insecure) anybody is answered.
// Lives on the loop's thread.
class DaemonPages {
 public:
  // As HttpServer::Open. `server` must outlive it.
  static absl::StatusOr<std::unique_ptr<DaemonPages>> Open(boost::asio::io_context& io,
                                                           const Endpoint& endpoint,
                                                           const Credentials& credentials,
                                                           const Server& server);
  DaemonPages(const DaemonPages&) = delete;
  DaemonPages& operator=(const DaemonPages&) = delete;

  std::uint16_t port() const { return http_->port(); }

  // What a request is answered; public for tests.
  HttpAnswer AnswerTo(const HttpRequest& request) const;

 private:
  DaemonPages(const Credentials& credentials, const Server& server)
      : credentials_(credentials), server_(server) {}

  // Whose jobs may be shown; nullopt: nobody's.
  std::optional<std::string> TenantOf(const HttpRequest& request) const;
  std::string Metrics(const std::string& tenant) const;

  const Credentials credentials_;
  const Server& server_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace muster::rendezvous
