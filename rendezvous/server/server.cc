#include "rendezvous/server/server.h"

#include <future>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/fronts/grpc_log_front.h"
#include "rendezvous/fronts/grpc_rendezvous_front.h"
#include "rendezvous/fronts/grpc_store_front.h"
#include "rendezvous/fronts/grpc_watch_front.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {
namespace {

// A notice is a single small write, so it is complete or it is not one.
std::optional<SessionToken> ReadDeathNotice(SharedPort::Socket connection) {
  char text[kMaxDeathNotice];
  boost::system::error_code error;
  connection.non_blocking(true, error);
  const std::size_t size = connection.read_some(boost::asio::buffer(text), error);
  return error ? std::nullopt : ParseDeathNotice({text, size});
}

}  // namespace

// What exists only while the server listens, in order of dependency.
struct Server::Listener {
  Listener(boost::asio::io_context& io, Server& server, const Credentials& credentials)
      : secure(credentials.secure()),
        authenticator(credentials),
        router(io, {.access = AccessOfAll(server, &Authenticator::Admit),
                    .access_again = AccessOfAll(server, &Authenticator::AdmitAgain),
                    .await_access =
                        [this, &server](const grpc::CallbackServerContext& call,
                                        std::function<void()> over) {
                          const std::string tenant = authenticator.TenantOf(call);
                          return server.openings_.Await(tenant, std::move(over));
                        },
                    .calls = {.of_connection = limits::kCallsOfConnection.most,
                              .refused_of_connection = limits::kRefusedOfConnection.most,
                              .of_tenant = limits::kCallsOfTenant.most,
                              .of_all = limits::kCalls.most},
                    .on_refused =
                        [this](const Peer& peer, std::uint64_t refused) {
                          authenticator.TooManyCalls(peer.address, refused);
                        },
                    .drop =
                        [this](const Peer& peer) {
                          if (port != nullptr) port->Drop(peer);
                        }}),
        rendezvous(
            io, router,
            {.attending =
                 [this, &server](const Peer& peer) {
                   return server.Attend(port ? port->Attend(peer) : nullptr);
                 },
             .knock_secret =
                 [&server](const SessionToken& session) { return server.knock_secret(session); }}),
        store(router, [this](const Peer& peer) { return Wait(peer); }),
        watch(io, router, server.changes(),
              {.watching = [this](const Peer& peer) { return Wait(peer); }}),
        logs(io, router, [this](const Peer& peer) { return Wait(peer); }) {}

  // Held while a call from there waits, watches or reads, so that its connection does not count as
  // idle.
  absl::StatusOr<std::shared_ptr<void>> Wait(const Peer& peer) const {
    if (port == nullptr) return nullptr;
    return port->Wait(peer);
  }

  Access AccessOfAll(Server& server, absl::StatusOr<std::string> (Authenticator::*admit)(
                                         Rpc, const grpc::CallbackServerContext&)) {
    return [this, &server, admit](
               Rpc rpc, const grpc::CallbackServerContext& call) -> absl::StatusOr<DaemonLoop*> {
      // Usually no connection is in its handshake.
      if (port != nullptr && port->awaits_calls()) port->Called(ParsePeer(call.peer()));
      const absl::StatusOr<std::string> tenant = (authenticator.*admit)(rpc, call);
      if (!tenant.ok()) return tenant.status();
      return server.LoopOf(*tenant);
    };
  }

  const bool secure;
  Authenticator authenticator;
  RpcRouter router;
  GrpcRendezvousFront rendezvous;
  GrpcStoreFront store;
  GrpcWatchFront watch;
  GrpcLogFront logs;
  std::future<GrpcServer::Started> starting;  // becomes `grpc`
  std::unique_ptr<GrpcServer> grpc;
  std::unique_ptr<SharedPort> port;
  std::vector<std::function<void()>> when_stopped;  // not empty once Stop was called
};

Server::Server(boost::asio::io_context& io, Serves serves)
    : io_(io), many_jobs_(serves == Serves::kManyJobs), durable_(false), home_(&tenants_[""]) {
  home_->daemon_loop = MakeLoop("", *home_->figures);
}

Server::Server(boost::asio::io_context& io, Memory memory)
    : io_(io), many_jobs_(true), durable_(true), memory_(std::move(memory)), home_(&tenants_[""]) {
  home_->daemon_loop = MakeLoop("", *home_->figures);
}

std::uint64_t Server::refused_calls() const {
  return listener_ == nullptr ? 0 : listener_->authenticator.refused();
}

SharedPortStats Server::connections() const {
  const bool listens = listener_ != nullptr && listener_->port != nullptr;
  return listens ? listener_->port->stats() : SharedPortStats{};
}

LimitCounts Server::RefusedByLimit() const {
  return listener_ == nullptr ? LimitCounts{} : listener_->router.RefusedByLimit();
}

int Server::job_count() const {
  int count = 0;
  for (const auto& [name, tenant] : tenants_) count += tenant.daemon_loop->job_count();
  return count;
}

int Server::agent_count() const {
  int count = 0;
  for (const auto& [name, tenant] : tenants_) count += tenant.daemon_loop->agent_count();
  return count;
}

Server::~Server() {
  if (preparing_ != nullptr) {
    // No `prepared` callback from here on.
    lifetime_.End();
    GrpcServer::Started started = preparing_->starting.get();
    if (started.ok()) {
      preparing_->grpc = *std::move(started);
      listener_ = std::move(preparing_);
    }
  }
  if (listener_ == nullptr) return;
  bool stopped = false;
  Stop([&stopped] { stopped = true; });
  io_.restart();
  while (!stopped && io_.run_one() > 0) {
  }
}

absl::Status Server::Listen(const Endpoint& endpoint, const Credentials& credentials) {
  auto sockets = ListenAt(io_, endpoint);
  if (!sockets.ok()) return sockets.status();
  std::vector<int> fds;
  for (boost::asio::ip::tcp::acceptor& socket : *sockets) fds.push_back(socket.native_handle());
  const ProbeKey key = MakeKnockKey();
  absl::StatusOr<PortHolder> port_holder = PortHolder::Start(fds, key);
  if (port_holder.ok()) {
    port_holder_.emplace(*std::move(port_holder));
  } else {
    spdlog::warn("{}: if this process is killed, other nodes are not notified",
                 std::string(port_holder.status().message()));
  }
  Prepare(credentials, [] {});
  const absl::Status status = Listen(*std::move(sockets), key);
  if (!status.ok()) port_holder_.reset();
  return status;
}

void Server::Prepare(const Credentials& credentials, std::function<void()> prepared) {
  preparing_ = std::make_unique<Listener>(io_, *this, credentials);
  preparing_->starting = GrpcServer::StartAside(
      io_, credentials, preparing_->router.gate(), preparing_->router,
      {.streams = limits::kStreams.most, .window_bytes = limits::kWindowBytes.most},
      lifetime_.Guard(std::move(prepared)));
}

void Server::AwaitPrepared() {
  preparing_->starting.wait();
}

absl::Status Server::Listen(std::vector<boost::asio::ip::tcp::acceptor> sockets,
                            std::optional<ProbeKey> key) {
  const std::uint16_t port = PortOf(sockets);
  auto listener = std::move(preparing_);
  GrpcServer::Started grpc = listener->starting.get();
  if (!grpc.ok()) {
    return absl::Status(grpc.status().code(),
                        absl::StrCat("listen on port ", port, ": ", grpc.status().message()));
  }
  listener->grpc = *std::move(grpc);
  listener->port = std::make_unique<SharedPort>(
      io_, std::move(sockets),
      [grpc = listener->grpc.get()](SharedPort::Socket connection) {
        grpc->Take(std::move(connection));
      },
      [this](SharedPort::Socket connection) {
        const std::optional<SessionToken> session = ReadDeathNotice(std::move(connection));
        if (session) AgentDied(*session);
      },
      SharedPortOptions{
          .secure = listener->secure,
          .on_failed = [authenticator = &listener->authenticator](
                           const std::string& address) { authenticator->TurnedAway(address); },
          .take_calls = [gate = listener->router.gate()] { return gate->TakeShown(); },
          .on_hidden_calls =
              [authenticator = &listener->authenticator, router = &listener->router](
                  const std::string& address, std::uint64_t calls) {
                router->CountRefused(limits::kHiddenCalls);
                authenticator->HiddenCalls(address, calls);
              }});
  listener_ = std::move(listener);
  knock_key_ = key;
  port_ = port;
  for (auto& [name, tenant] : tenants_) tenant.daemon_loop->BeginToServe();
  return absl::OkStatus();
}

void Server::AgentDied(const SessionToken& session) {
  // Only its agent and we know a session's token, so the tenant need not be known.
  for (auto& [name, tenant] : tenants_) tenant.daemon_loop->AgentDied(session);
  if (!unopened_.empty()) pending_death_notices_.Add(session);
}

std::shared_ptr<void> Server::Attend(std::shared_ptr<void> connection) {
  const auto count = [this](std::uint32_t now) {
    attending_ = now;
    if (port_holder_) port_holder_->SetAttending(now);
  };
  count(attending_ + 1);
  return std::shared_ptr<void>(
      this, [this, count, connection = std::move(connection)](void*) { count(attending_ - 1); });
}

void Server::OnStoreConnection(std::function<void(boost::asio::ip::tcp::socket)> take) {
  if (listener_ != nullptr && listener_->port != nullptr) {
    listener_->port->OnStoreConnection(std::move(take));
  }
}

void Server::Drain(const std::string& why, std::function<void()> drained) {
  draining_ = why;
  // Calls `drained` when the last of them becomes idle.
  const auto busy = std::make_shared<std::size_t>(tenants_.size());
  for (auto& [name, tenant] : tenants_) {
    tenant.daemon_loop->Drain(why);
    tenant.daemon_loop->WhenIdle([busy, drained] {
      if (--*busy == 0) drained();
    });
  }
}

void Server::Stop(std::function<void()> stopped) {
  if (listener_ == nullptr) {
    boost::asio::post(io_, std::move(stopped));
    return;
  }
  listener_->when_stopped.push_back(std::move(stopped));
  if (listener_->when_stopped.size() > 1) return;
  // It holds the port as well.
  port_holder_.reset();
  listener_->port.reset();
  listener_->router.Close();
  listener_->rendezvous.EndStreams();
  listener_->store.Close();
  listener_->logs.EndStreams();
  port_ = 0;
  listener_->watch.End([this] { StopGrpc(); });
}

void Server::StopGrpc() {
  changes_.End();
  listener_->grpc->Stop([this] {
    const std::vector<std::function<void()>> when_stopped = std::move(listener_->when_stopped);
    listener_.reset();
    // A callback may destroy this server.
    for (const std::function<void()>& stopped : when_stopped) stopped();
  });
}

}  // namespace muster::rendezvous
