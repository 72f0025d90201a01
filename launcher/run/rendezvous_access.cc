#include "launcher/run/rendezvous_access.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/machine/network.h"
#include "launcher/machine/numa.h"
#include "rendezvous/client/in_process_client.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/net/find_credentials.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/net/process_descriptors.h"
#include "worker/env_names.h"
#include "worker/process/descriptors.h"

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

// Made of characters that names may have.
std::string MakeNodeId(const std::string& host) {
  std::string id = host.substr(0, 40);
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  if (id.empty() || id.front() == '-') id = absl::StrCat("n", id);
  return absl::StrCat(id, "-", getpid(), "-", base::RandomName(6));
}

// The watchdog's FIFO; empty when no watchdog is asked for, as with torchrun.
std::string TimerFile(const Environment& own, const std::string& temp_dir) {
  if (GetOr(own, "TORCHELASTIC_ENABLE_FILE_TIMER", "0") != "1") return "";
  return GetOr(own, worker::env::kTimerFile,
               absl::StrCat(temp_dir, "/watchdog_timer_", base::RandomName(12)));
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
    spdlog::warn("--insecure: anyone who can reach {} can join, read and end this job",
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
  if (absl::Status enough = rendezvous::CheckThreads(); !enough.ok()) return enough;
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
    return std::make_unique<rendezvous::InProcessClient>(*io_, server_->daemon_loop(), listener);
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

rendezvous::NodeInfo DescribeNode(const LaunchConfig& config, const Environment& base,
                                  const std::string& address) {
  rendezvous::NodeInfo node;
  node.host = base::SafeLine(HostName());
  node.node_id = MakeNodeId(node.host);
  node.address = address;
  // Nobody but this machine, through loopback, comes to a rendezvous of one node.
  if (config.mode != RendezvousMode::kStandalone) node.addresses = InterfaceAddresses();
  node.slots = config.nproc_per_node;
  node.rank_hint = config.node_rank;
  node.topology = absl::StrSplit(config.topology, '/', absl::SkipEmpty());
  node.role = config.role;
  node.devices = absl::StrSplit(GetOr(base, "CUDA_VISIBLE_DEVICES", ""), ',', absl::SkipEmpty());
  node.delivers_logs = true;
  return node;
}

absl::StatusOr<NodeBase> MakeNodeBase(const LaunchConfig& config, const Environment& own,
                                      const Machine& machine, const std::string& temp_dir) {
  NodeBase base{.environment = BaseEnvironment(config, own),
                .host = HostName(),
                .cpus = {},
                .timer_file = TimerFile(own, temp_dir)};
  if (config.numa_binding) {
    auto cpus = BindWorkersHere(*config.numa_binding, config.nproc_per_node, base.environment,
                                GpusOf(machine).gpus);
    if (!cpus.ok()) return cpus.status();
    base.cpus = *std::move(cpus);
  }
  return base;
}

std::string SetGlooInterface(const LaunchConfig& config, const std::string& address,
                             Environment& base) {
  if (config.max_nodes == 1 || !GetOr(base, worker::env::kGlooSocketIfname, "").empty()) return "";
  // While the endpoint leads nowhere this machine's name stands in for its address. Then it is the
  // endpoint that the user has to hear of.
  const bool known =
      address != HostName() || config.endpoint.host == address || config.local_addr == address;
  if (!known) return "";
  const std::optional<std::string> interface = InterfaceForGloo(HostName(), address);
  if (!interface) return "";
  if (interface->empty()) {
    return absl::StrCat("this machine's name ", HostName(),
                        " resolves to a loopback address only, and Gloo will listen "
                        "there; if the workers use Gloo, set GLOO_SOCKET_IFNAME to an interface "
                        "that other nodes reach");
  }
  base[worker::env::kGlooSocketIfname] = *interface;
  return "";
}

}  // namespace muster::launcher
