#include "rendezvous/tunnel/tunnel_server.h"

#include <chrono>
#include <utility>

#include <grpcpp/server_context.h>
#include <boost/asio/post.hpp>

#include "rendezvous/core/limits.h"
#include "rendezvous/fronts/call_entrance.h"
#include "rendezvous/fronts/door_keeper.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/net/shared_port.h"
#include "rendezvous/tunnel/tunnel_front.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {
namespace {

// Those that have ended are counted until gRPC has freed them.
constexpr std::uint64_t kCallsOfConnection = 2 * limits::kTunnelStreams.most;

}  // namespace

// In the order in which they depend on one another.
struct TunnelServer::Parts {
  Parts(boost::asio::io_context& io, const Credentials& credentials)
      : door_keeper(credentials),
        entrance(io, {.access = [this](Rpc rpc, const grpc::CallbackServerContext& call)
                          -> absl::StatusOr<Driver*> {
                        if (port != nullptr && port->awaits_calls()) {
                          port->Called(ParsePeer(call.peer()));
                        }
                        const absl::Status allowed = door_keeper.Admit(rpc, call).status();
                        if (!allowed.ok()) return allowed;
                        return nullptr;  // there is no job here
                      },
                      .calls = {.of_connection = kCallsOfConnection,
                                .refused_of_connection = limits::kRefusedOfConnection.most,
                                .of_tenant = 2 * limits::kTunnelStreamsInAll.most,
                                .of_all = 2 * limits::kTunnelStreamsInAll.most},
                      .on_refused =
                          [this](const Peer& peer, std::uint64_t refused) {
                            door_keeper.TooManyCalls(peer.address, refused);
                          },
                      .drop =
                          [this](const Peer& peer) {
                            if (port != nullptr) port->Drop(peer);
                          }}),
        front(io, entrance,
              {.hold = [this](const grpc::CallbackServerContext& call) -> std::shared_ptr<void> {
                 return port != nullptr ? port->Attend(ParsePeer(call.peer())) : nullptr;
               },
               .complain = [this](const grpc::CallbackServerContext& call,
                                  const std::string& what) { door_keeper.Complain(call, what); }}) {
  }

  DoorKeeper door_keeper;
  CallEntrance entrance;
  TunnelFront front;
  std::unique_ptr<GrpcServer> grpc;
  std::unique_ptr<SharedPort> port;                 // during a round
  std::vector<std::function<void()>> when_stopped;  // not empty once Stop was called
};

TunnelServer::TunnelServer(boost::asio::io_context& io, Credentials credentials)
    : io_(io), credentials_(std::move(credentials)) {}

TunnelServer::~TunnelServer() {
  if (parts_ == nullptr) return;
  bool stopped = false;
  Stop([&stopped] { stopped = true; });
  io_.restart();
  while (!stopped && io_.run_one() > 0) {
  }
}

absl::Status TunnelServer::BeginRound(TunnelRound round,
                                      std::vector<boost::asio::ip::tcp::acceptor> sockets,
                                      const boost::asio::ip::tcp::endpoint& store) {
  EndRound();
  if (parts_ == nullptr) {
    auto parts = std::make_unique<Parts>(io_, credentials_);
    auto grpc = GrpcServer::Start(io_, credentials_, parts->entrance.gate(), parts->entrance,
                                  {.streams = limits::kTunnelStreams.most});
    if (!grpc.ok()) return grpc.status();
    parts->grpc = *std::move(grpc);
    parts_ = std::move(parts);
  }
  parts_->front.BeginRound(std::move(round), store);
  parts_->port = std::make_unique<SharedPort>(
      io_, std::move(sockets),
      [grpc = parts_->grpc.get()](SharedPort::Socket connection) {
        grpc->Take(std::move(connection));
      },
      // Nobody's death is told here.
      [](SharedPort::Socket) {},
      SharedPortOptions{
          .secure = credentials_.secure(),
          .on_failed = [door_keeper = &parts_->door_keeper](
                           const std::string& address) { door_keeper->TurnedAway(address); },
          .take_calls = [gate = parts_->entrance.gate()] { return gate->TakeShown(); },
          .calls_of_connection = kCallsOfConnection,
          .on_hidden_calls = [door_keeper = &parts_->door_keeper](
                                 const std::string& address,
                                 std::uint64_t calls) { door_keeper->HiddenCalls(address, calls); },
          .host_silence =
              std::chrono::seconds(static_cast<int>(limits::kTunnelSilentSeconds.most))});
  return absl::OkStatus();
}

void TunnelServer::EndRound() {
  if (parts_ == nullptr) return;
  parts_->port.reset();
  parts_->front.EndRound();
}

void TunnelServer::Stop(std::function<void()> stopped) {
  if (parts_ == nullptr) {
    boost::asio::post(io_, std::move(stopped));
    return;
  }
  parts_->when_stopped.push_back(std::move(stopped));
  if (parts_->when_stopped.size() > 1) return;
  EndRound();
  parts_->grpc->Stop([this] {
    const std::vector<std::function<void()>> when_stopped = std::move(parts_->when_stopped);
    parts_.reset();
    // One of them may destroy this server.
    for (const std::function<void()>& stopped : when_stopped) stopped();
  });
}

std::size_t TunnelServer::streams() const {
  return parts_ == nullptr ? 0 : parts_->front.streams();
}

std::uint64_t TunnelServer::refused() const {
  return parts_ == nullptr ? 0 : parts_->door_keeper.refused();
}

}  // namespace muster::rendezvous
