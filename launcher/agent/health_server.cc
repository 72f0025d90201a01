#include "launcher/agent/health_server.h"

#include <utility>

namespace muster::launcher {

rendezvous::HttpAnswer HealthServer::AnswerTo(const rendezvous::HttpRequest& request) const {
  const bool asks_ready = request.path == "/healthz/ready";
  if (!asks_ready && request.path != "/healthz") return {.status = 404, .body = "", .headers = {}};
  if (asks_ready && !ready_) return {.status = 503, .body = "not ready\n", .headers = {}};
  return {.body = "ok\n", .headers = {}};
}

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Open(
    boost::asio::io_context& io, const rendezvous::Endpoint& endpoint) {
  std::unique_ptr<HealthServer> health(new HealthServer);
  auto server = rendezvous::HttpServer::Open(
      io, endpoint, "/healthz", [health = health.get()](const rendezvous::HttpRequest& request) {
        return health->AnswerTo(request);
      });
  if (!server.ok()) return server.status();
  health->server_ = *std::move(server);
  return health;
}

}  // namespace muster::launcher
