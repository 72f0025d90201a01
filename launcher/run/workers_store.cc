#include "launcher/run/workers_store.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/process_descriptors.h"
#include "worker/process/descriptors.h"

namespace muster::launcher {
namespace {

// More workers than a job usually has on all of its nodes.
constexpr std::size_t kMost = 4096;
// How many are looked at for one newcomer: a flood of them must not take the loop's time, so that a
// look costs about as much as the newcomer does itself.
constexpr std::size_t kLook = 256;

std::size_t Limit() {
  // Asked each time, as it may be changed from outside (prlimit).
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<rlim_t>(kMost, limit.rlim_cur / 4);
}

constexpr char kLoopback[] = "127.0.0.1";

constexpr char kNoAgreement[] =
    "this rendezvous does not know --worker-store=tunnel, without which the workers' store would "
    "be "
    "open to the network; start it from the version of Muster that the nodes have, or give "
    "--worker-store=agent on every node";

constexpr char kOtherPort[] = "; choose another --master-port, or none at all to get a free one";

bool IsLocal(const LaunchConfig& config) {
  if (config.mode == RendezvousMode::kStandalone) return true;
  return config.mode == RendezvousMode::kFixedPort &&
         rendezvous::IsLoopbackLiteral(config.endpoint.host);
}

std::string ListenAtWhichAddress(const LaunchConfig& config, const std::string& address) {
  if (IsLocal(config)) return kLoopback;
  // "localhost" may be two addresses, or none.
  const bool loopback = rendezvous::IsLoopbackLiteral(address) && address != "localhost";
  return loopback || !InterfaceWith(address).empty() ? address : "0.0.0.0";
}

rendezvous::Endpoint ListenWhere(const LaunchConfig& config, const std::string& address) {
  const bool fixed_port = config.mode == RendezvousMode::kFixedPort;
  return {ListenAtWhichAddress(config, address),
          fixed_port ? config.endpoint.port : std::uint16_t{0}};
}

// Node rank 0 alone serves the store, at the endpoint.
bool IsAtEndpoint(const LaunchConfig& config) {
  return config.mode == RendezvousMode::kStatic && config.worker_store == WorkerStore::kAgent;
}

}  // namespace

void EarlyConnections::Add(Socket connection) {
  const std::size_t limit = Limit();
  if (waiting_.size() >= limit) DropSomeThatHungUp();
  if (waiting_.size() >= limit) return;
  waiting_.push_back(std::move(connection));
}

std::vector<EarlyConnections::Socket> EarlyConnections::Take() {
  std::vector<Socket> live;
  for (Socket& connection : std::exchange(waiting_, {})) {
    pollfd poll_for = {connection.native_handle(), POLLRDHUP, 0};
    if (poll(&poll_for, 1, 0) == 0) live.push_back(std::move(connection));
  }
  return live;
}

void EarlyConnections::DropSomeThatHungUp() {
  if (next_look_ >= waiting_.size()) next_look_ = 0;
  const std::size_t count = std::min(kLook, waiting_.size() - next_look_);
  pollfd looks[kLook];
  for (std::size_t i = 0; i < count; ++i) {
    looks[i] = {waiting_[next_look_ + i].native_handle(), POLLRDHUP, 0};
  }
  poll(looks, count, 0);
  const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(next_look_);
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  std::size_t at = 0;
  const auto kept =
      std::remove_if(first, last, [&](const Socket&) { return looks[at++].revents != 0; });
  next_look_ += static_cast<std::size_t>(kept - first);
  waiting_.erase(kept, last);
}

WorkersStore::WorkersStore(boost::asio::io_context& io, const LaunchConfig& config,
                           const std::string& address, rendezvous::Server* rendezvous,
                           const rendezvous::Credentials& credentials)
    : io_(io),
      kind_(config.worker_store),
      listen_(ListenWhere(config, address)),
      elsewhere_(IsAtEndpoint(config) && config.node_rank != 0 ? config.endpoint.port : 0),
      shared_(IsAtEndpoint(config) && rendezvous != nullptr && rendezvous->port() != 0 ? rendezvous
                                                                                       : nullptr),
      server_(io, {.own_user_only = true}),
      credentials_(credentials),
      tunnel_(io, credentials) {
  if (kind_ == WorkerStore::kTunnel) {
    // Each worker's connection takes one on its own node, and two where the store is.
    if (const auto before = rendezvous::RaiseDescriptorLimit()) {
      worker::SetDescriptorLimitOfWorkers(*before);
    }
  }
  if (shared_ == nullptr) return;
  shared_->OnStoreConnection([this](boost::asio::ip::tcp::socket connection) {
    if (round_runs_) {
      server_.Adopt(std::move(connection));
    } else {
      early_.Add(std::move(connection));
    }
  });
}

absl::StatusOr<std::uint16_t> WorkersStore::Prepare() {
  if (kind_ == WorkerStore::kWorker) {
    reserved_.reset();
    absl::StatusOr<ReservedPort> port = ReservedPort::Hold(listen_.port);
    if (!port.ok()) return port.status();
    reserved_.emplace(*std::move(port));
    return reserved_->port();
  }
  server_.Reset();
  round_runs_ = false;
  early_.Clear();
  if (shared_ != nullptr) return shared_->port();
  if (elsewhere_ != 0) return elsewhere_;
  tunnel_.EndRound();
  tunnel_out_.reset();
  server_.Close();
  listening_.clear();
  auto sockets = rendezvous::ListenAt(io_, listen_);
  if (!sockets.ok()) {
    return absl::Status(sockets.status().code(), absl::StrCat("cannot serve the workers' store: ",
                                                              sockets.status().message(),
                                                              listen_.port == 0 ? "" : kOtherPort));
  }
  // From now on the kernel keeps connections waiting, so that no worker of a faster node is turned
  // away.
  listening_ = *std::move(sockets);
  return rendezvous::PortOf(listening_);
}

void WorkersStore::Close(std::function<void()> closed) {
  if (shared_ != nullptr) shared_->OnStoreConnection(nullptr);
  early_.Clear();
  listening_.clear();
  tunnel_out_.reset();
  server_.Close();
  tunnel_.Stop(std::move(closed));
}

absl::StatusOr<rendezvous::Endpoint> WorkersStore::BeginRound(
    const rendezvous::Assignment& assignment) {
  if (assignment.store_tunnel != (kind_ == WorkerStore::kTunnel)) {
    return absl::FailedPreconditionError(kNoAgreement);
  }
  if (kind_ == WorkerStore::kTunnel) return BeginTunnel(assignment);
  const rendezvous::Endpoint store{assignment.master_addr, assignment.master_port};
  if (!assignment.agent_store || assignment.group_rank != 0) {
    // Workers of the group with rank 0 alone may look for a port here.
    if (assignment.group_rank != 0) reserved_.reset();
    listening_.clear();
    return store;
  }
  std::vector<std::string> allowed = assignment.member_addresses;
  // Whoever connects through loopback is on this machine, which is one of the round's.
  allowed.insert(allowed.end(), {"127.0.0.1", "::1"});
  server_.AllowOnly(std::move(allowed));
  round_runs_ = true;
  // Without the last round's workers: they are gone by now, and with them their ends.
  for (boost::asio::ip::tcp::socket& connection : early_.Take()) {
    server_.Adopt(std::move(connection));
  }
  for (boost::asio::ip::tcp::acceptor& socket : std::exchange(listening_, {})) {
    const absl::Status status = server_.Serve(socket.release());
    if (!status.ok()) return status;
  }
  return store;
}

absl::StatusOr<rendezvous::Endpoint> WorkersStore::BeginTunnel(
    const rendezvous::Assignment& assignment) {
  auto own = rendezvous::ListenAt(io_, {kLoopback, 0});
  if (!own.ok()) return own.status();
  const rendezvous::Endpoint store{kLoopback, rendezvous::PortOf(*own)};
  const int fd = own->front().release();
  rendezvous::TunnelRound round{assignment.run_id, assignment.id()};
  if (assignment.group_rank != 0) {
    listening_.clear();
    tunnel_out_.emplace(io_, rendezvous::TunnelClientOptions{
                                 .store = {assignment.master_addr, assignment.master_port},
                                 .credentials = credentials_,
                                 .round = std::move(round)});
    const absl::Status status = tunnel_out_->Serve(fd);
    if (!status.ok()) return status;
    return store;
  }
  server_.AllowOnly({{kLoopback}});
  absl::Status status = server_.Serve(fd);
  if (!status.ok()) return status;
  status = tunnel_.BeginRound(std::move(round), std::exchange(listening_, {}),
                              {boost::asio::ip::address_v4::loopback(), store.port});
  if (!status.ok()) return status;
  return store;
}

}  // namespace muster::launcher
