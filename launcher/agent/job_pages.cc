#include "launcher/agent/job_pages.h"

#include <spdlog/spdlog.h>

#include "rendezvous/net/token_source.h"

namespace muster::launcher {

absl::StatusOr<std::unique_ptr<rendezvous::DaemonPages>> OpenJobPages(
    boost::asio::io_context& io, const LaunchConfig& config,
    const rendezvous::Credentials& credentials, rendezvous::Server* server,
    const rendezvous::LoopTurns& turns) {
  if (!config.http) return nullptr;
  if (server == nullptr) {
    spdlog::info("--http: this node does not host the rendezvous; the one that does shows the job");
    return nullptr;
  }
  rendezvous::Credentials shown_to = credentials;
  if (!credentials.secure() && !config.token.insecure) {
    auto own = rendezvous::FindCredentials(config.token, *config.http, rendezvous::Role::kAgent);
    if (!own.ok()) return own.status();
    shown_to = *std::move(own);
  }
  auto pages = rendezvous::DaemonPages::Open(io, *config.http, shown_to, *server, &turns);
  if (pages.ok()) {
    spdlog::info("showing the job at http://{}/",
                 rendezvous::ToString({config.http->host, (*pages)->port()}));
  }
  return pages;
}

}  // namespace muster::launcher
