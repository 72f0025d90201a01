#include "launcher/agent/rendezvous_access.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "launcher/machine/local_address.h"
#include "rendezvous/client/grpc_client.h"
#include "rendezvous/client/in_process_client.h"
#include "rendezvous/net/descriptor_limit.h"
#include "worker/process/descriptor_limit.h"

namespace muster::launcher {
namespace {

// Who holds a port of this very machine answers at once, or is no rendezvous.
constexpr std::chrono::milliseconds kLocalPatience = std::chrono::seconds(5);

bool HasNetwork(const LaunchConfig& config) {
  return config.mode == RendezvousMode::kEndpoint || config.mode == RendezvousMode::kStatic;
}

// The address that other nodes are told: what the user said, else what the connection to the
// rendezvous comes from. Never a guess out of the host's name.
std::string AddressToTell(const LaunchConfig& config, const EndpointView& view) {
  if (!config.local_addr.empty()) return config.local_addr;
  switch (config.mode) {
    case RendezvousMode::kStandalone:
      return "127.0.0.1";
    case RendezvousMode::kFixedPort:
      return config.endpoint.host;
    case RendezvousMode::kStatic:
      // --master-addr is where node rank 0 is, as the others call it.
      if (config.node_rank == 0) return config.endpoint.host;
      break;
    case RendezvousMode::kEndpoint:
      break;
  }
  // This machine's /etc/hosts has its own name as a loopback address (Debian's 127.0.1.1): the
  // others know better where that name leads.
  if (view.ours && view.loopback && !rendezvous::IsLoopbackLiteral(config.endpoint.host)) {
    return config.endpoint.host;
  }
  return view.local_address.empty() ? HostName() : view.local_address;
}

// Where the host of a rendezvous listens: at the endpoint, unless only this machine would see it
// there.
rendezvous::Endpoint ListenAt(const rendezvous::Endpoint& endpoint, const EndpointView& view) {
  if (!view.loopback || rendezvous::IsLoopbackLiteral(endpoint.host)) return endpoint;
  spdlog::info("{} is a loopback address here; listening on every address of this machine",
               endpoint.host);
  return {"0.0.0.0", endpoint.port};
}

}  // namespace

std::string RendezvousEndpoint(const LaunchConfig& config) {
  return HasNetwork(config) ? ToString(config.endpoint) : "";
}

absl::StatusOr<rendezvous::Credentials> RendezvousCredentials(const LaunchConfig& config) {
  if (!HasNetwork(config)) return rendezvous::Credentials::Plaintext();
  auto credentials = rendezvous::FindCredentials(
      config.token, config.endpoint, rendezvous::Role::kAgent,
      [](const std::string& sentence) { spdlog::warn("{}", sentence); });
  if (credentials.ok() && !credentials->secure()) {
    spdlog::warn("--insecure: whoever reaches {} can join, read and end this job",
                 ToString(config.endpoint));
  }
  return credentials;
}

absl::StatusOr<RendezvousAccess> RendezvousAccess::Open(
    boost::asio::io_context& io, const LaunchConfig& config,
    const rendezvous::Credentials& credentials) {
  if (!HasNetwork(config)) {
    RendezvousAccess access(io, AddressToTell(config, {}));
    access.server_ = std::make_unique<rendezvous::Server>(io);
    return access;
  }

  const EndpointView view = LookAtEndpoint(config.endpoint);
  // Several places are those of daemons: no agent serves a rendezvous that may be elsewhere.
  const bool elsewhere = !config.endpoint.standbys.empty();
  const rendezvous::Endpoint endpoint{view.host, config.endpoint.port, config.endpoint.standbys};
  RendezvousAccess access(io, AddressToTell(config, view));
  const bool at_endpoint = config.mode == RendezvousMode::kEndpoint;
  const bool may_host =
      !elsewhere && (at_endpoint ? config.is_host.value_or(true) : config.node_rank == 0);
  const bool must_host = !elsewhere && at_endpoint && config.is_host.value_or(false);
  if ((view.ours && may_host) || must_host) {
    auto server = std::make_unique<rendezvous::Server>(io);
    const absl::Status listening = server->Listen(ListenAt(endpoint, view), credentials);
    if (listening.ok()) {
      spdlog::info("this node hosts the rendezvous at {}", ToString(config.endpoint));
      access.server_ = std::move(server);
      // Other nodes' agents, and with static ranks their workers, connect to this process.
      if (const auto before = rendezvous::RaiseDescriptorLimit()) {
        worker::SetDescriptorLimitOfWorkers(*before);
      }
      return access;
    }
    if (listening.code() != absl::StatusCode::kAlreadyExists || must_host) {
      return absl::Status(listening.code(),
                          absl::StrCat("cannot serve the rendezvous: ", listening.message()));
    }
  }
  access.remote_ = endpoint;
  access.credentials_ = credentials;
  access.reconnect_timeout_ = config.timeouts.reconnect;
  access.trust_refusals_ = config.trust_refusals;
  access.connect_timeout_ = view.ours && may_host
                                ? std::min(config.timeouts.connect, kLocalPatience)
                                : config.timeouts.connect;
  return access;
}

std::unique_ptr<rendezvous::RendezvousClient> RendezvousAccess::MakeClient(
    rendezvous::RendezvousClient::Listener& listener) const {
  if (server_ != nullptr) {
    return std::make_unique<rendezvous::InProcessClient>(*io_, server_->driver(), listener);
  }
  return rendezvous::MakeGrpcClient(*io_,
                                    {.endpoint = *remote_,
                                     .credentials = credentials_,
                                     .connect_timeout = connect_timeout_,
                                     .reconnect_timeout = reconnect_timeout_,
                                     .trust_refusals = trust_refusals_},
                                    listener);
}

void RendezvousAccess::Close(const std::string& why, std::function<void()> closed) {
  if (server_ == nullptr) {
    boost::asio::post(*io_, std::move(closed));
    return;
  }
  if (!why.empty()) server_->Close(why);
  server_->Drain("its host is leaving",
                 [server = server_.get(), closed = std::move(closed)] { server->Stop(closed); });
}

}  // namespace muster::launcher
