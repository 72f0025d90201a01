#include "rendezvous/fronts/tunnel_server.h"

#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <grpcpp/server_context.h>
#include <boost/asio/post.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "proto/tunnel.pb.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/fronts/loop_stream.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/net/peer.h"
#include "rendezvous/net/relay.h"
#include "rendezvous/net/shared_port.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// Descriptors that are left for files, workers and what gRPC opens itself.
constexpr rlim_t kReserve = 64;

std::string NameOf(const TunnelRound& round) {
  return absl::StrCat("round ", round.round.number, " of job '",
                      OneLine(round.run_id, kMaxNameLength), "'");
}

// The gRPC face of a tunnel: proto/tunnel.proto's service in front of the workers' store.
//
// Relays each stream to a connection of its own to the store, which is on this machine. Lives on
// the loop's thread. `io` and the router must outlive the front, and the front the grpc::Server
// that the router is registered with.
class TunnelFront final {
 public:
  // What the front asks its server, on the loop and while the call is open.
  struct Gate {
    // Returns something to hold while the call is under way.
    std::function<std::shared_ptr<void>(const grpc::CallbackServerContext&)> hold;
    // A caller was refused for another reason: "asks for ...".
    std::function<void(const grpc::CallbackServerContext&, const std::string& what)> complain;
  };

  TunnelFront(boost::asio::io_context& io, RpcRouter& router, Gate gate);
  TunnelFront(const TunnelFront&) = delete;
  TunnelFront& operator=(const TunnelFront&) = delete;

  // From now on carries connections for this round, to the store at `store`.
  void BeginRound(TunnelRound round, const boost::asio::ip::tcp::endpoint& store);
  // Cuts all streams; whoever comes until the next round is refused.
  void EndRound();

  std::size_t streams() const { return streams_.size(); }

 private:
  class Stream;

  // A connection to the store for a stream that begins with this, not connected yet.
  absl::StatusOr<boost::asio::ip::tcp::socket> Admit(const tunnel::v1::Open& open) const;

  boost::asio::io_context& io_;
  RpcRouter& router_;
  const Gate gate_;
  std::optional<TunnelRound> round_;
  boost::asio::ip::tcp::endpoint store_;
  std::set<Stream*> streams_;
  std::vector<char> buffer_;
};

// One worker's connection.
class TunnelFront::Stream final : public LoopStream<tunnel::v1::Chunk>, private ByteStream {
 public:
  Stream(TunnelFront& front, const grpc::CallbackServerContext& context, CallGate::Pass pass)
      : LoopStream(front.io_, front.router_, Rpc::kTunnelCarry, context, std::move(pass)),
        front_(front) {}
  ~Stream() override { front_.streams_.erase(this); }

 private:
  void HandleOpen() override {
    front_.streams_.insert(this);
    hold_ = front_.gate_.hold(context_);
    ReadNext();
  }
  void HandleRead(bool ok) override {
    if (!ok) return HandleGone();
    if (!relay_ && !store_) return Connect();
    if (!relay_) return End(absl::InvalidArgumentError("the caller does not wait for an answer"));
    if (in_.end()) return relay_->OnEnd();
    relay_->OnBytes(std::move(*in_.mutable_data()));
  }
  void HandleWritten(bool ok) override {
    if (!ok) return HandleGone();
    relay_->OnWritten();
  }
  // Resets the connection to the store, if there is one.
  void HandleEnd(const absl::Status&) override {
    store_.reset();
    if (relay_) relay_->OnBroken();
    hold_.reset();
  }

  void Connect() {
    if (!MayGoOn()) return End(NoLongerAllowed());
    absl::StatusOr<tcp::socket> store = front_.Admit(in_.open());
    if (!store.ok()) {
      // A worker that comes a moment too late is nobody to complain of.
      if (!absl::IsUnavailable(store.status())) {
        front_.gate_.complain(context_, std::string(store.status().message()));
      }
      return End(absl::Status(store.status().code(),
                              absl::StrCat("this client ", store.status().message())));
    }
    // Counted among the round's streams from now on.
    admission_.place.reset();
    store_.emplace(*std::move(store));
    store_->async_connect(front_.store_,
                          lifetime_.Guard([this](const boost::system::error_code& error) {
                            if (!ended()) OnConnected(error);
                          }));
  }

  void OnConnected(const boost::system::error_code& error) {
    if (error) {
      return End(
          absl::UnavailableError(absl::StrCat("connect to the workers' store: ", error.message())));
    }
    lingers_ = false;
    relay_.emplace(*std::exchange(store_, std::nullopt), static_cast<ByteStream&>(*this),
                   front_.buffer_);
    StartSendInitialMetadata();
    relay_->Start();
  }

  // ByteStream.
  void Read() override { ReadNext(); }
  void Write(std::string_view bytes) override {
    tunnel::v1::Chunk chunk;
    chunk.set_data(bytes.data(), bytes.size());
    Send(chunk);
  }
  void WriteEnd() override {
    tunnel::v1::Chunk chunk;
    chunk.set_end(true);
    Send(chunk);
  }
  void Send(const tunnel::v1::Chunk& chunk) {
    ToBytes(chunk, &out_bytes_);
    StartWrite(&out_bytes_);
  }
  void Finish() override { End(absl::OkStatus()); }
  void Abort() override { End(absl::AbortedError("the connection to the store was reset")); }

  TunnelFront& front_;
  grpc::ByteBuffer out_bytes_;  // gRPC's between StartWrite and OnWriteDone
  std::shared_ptr<void> hold_;
  std::optional<tcp::socket> store_;  // while it connects
  std::optional<Relay> relay_;
};

TunnelFront::TunnelFront(boost::asio::io_context& io, RpcRouter& router, Gate gate)
    : io_(io), router_(router), gate_(std::move(gate)), buffer_(limits::kTunnelChunkBytes.most) {
  router.ServeStream(Rpc::kTunnelCarry,
                     [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
                       return Stream::Open<Stream>(*this, context, std::move(pass));
                     });
}

void TunnelFront::BeginRound(TunnelRound round, const tcp::endpoint& store) {
  EndRound();
  round_ = std::move(round);
  store_ = store;
}

void TunnelFront::EndRound() {
  round_.reset();
  for (Stream* const stream : streams_) stream->End(absl::UnavailableError("the round is over"));
}

absl::StatusOr<tcp::socket> TunnelFront::Admit(const tunnel::v1::Open& open) const {
  const TunnelRound asked = FromWire(open);
  if (!round_) {
    return absl::UnavailableError(
        absl::StrCat("asks for ", NameOf(asked), ", and no round's store is served here now"));
  }
  if (asked != *round_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "asks for the store of ", NameOf(asked), ", and here is that of ", NameOf(*round_),
        asked.run_id == round_->run_id && asked.round.number == round_->round.number
            ? " in another life"
            : ""));
  }
  if (streams_.size() > limits::kTunnelStreamsInAll.most) {
    return absl::ResourceExhaustedError(absl::StrCat("asks for one connection more than the ",
                                                     limits::kTunnelStreamsInAll.most,
                                                     " that workers can have to their store"));
  }
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  tcp::socket store(io_);
  boost::system::error_code error;
  store.open(store_.protocol(), error);
  // The store takes another descriptor.
  if (error || static_cast<rlim_t>(store.native_handle()) + kReserve >= limit.rlim_cur) {
    return absl::ResourceExhaustedError(
        absl::StrCat("asks for a connection for which no file descriptor is left (of ",
                     limit.rlim_cur, "); raise `ulimit -n` on the node with group rank 0"));
  }
  return store;
}

// Those that have ended are counted until gRPC has freed them.
constexpr std::uint64_t kCallsOfConnection = 2 * limits::kTunnelStreams.most;

}  // namespace

// In the order in which they depend on one another.
struct TunnelServer::Parts {
  Parts(boost::asio::io_context& io, const Credentials& credentials)
      : authenticator(credentials),
        router(io, {.access = [this](Rpc rpc, const grpc::CallbackServerContext& call)
                        -> absl::StatusOr<DaemonLoop*> {
                      if (port != nullptr && port->awaits_calls()) {
                        port->Called(ParsePeer(call.peer()));
                      }
                      const absl::Status allowed = authenticator.Admit(rpc, call).status();
                      if (!allowed.ok()) return allowed;
                      return nullptr;  // there is no job here
                    },
                    .calls = {.of_connection = kCallsOfConnection,
                              .refused_of_connection = limits::kRefusedOfConnection.most,
                              .of_tenant = 2 * limits::kTunnelStreamsInAll.most,
                              .of_all = 2 * limits::kTunnelStreamsInAll.most},
                    .on_refused =
                        [this](const Peer& peer, std::uint64_t refused) {
                          authenticator.TooManyCalls(peer.address, refused);
                        },
                    .drop =
                        [this](const Peer& peer) {
                          if (port != nullptr) port->Drop(peer);
                        }}),
        front(
            io, router,
            {.hold = [this](const grpc::CallbackServerContext& call) -> std::shared_ptr<void> {
               return port != nullptr ? port->Attend(ParsePeer(call.peer())) : nullptr;
             },
             .complain = [this](const grpc::CallbackServerContext& call,
                                const std::string& what) { authenticator.Complain(call, what); }}) {
  }

  Authenticator authenticator;
  RpcRouter router;
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
    auto grpc = GrpcServer::Start(io_, credentials_, parts->router.gate(), parts->router,
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
          .on_failed = [authenticator = &parts_->authenticator](
                           const std::string& address) { authenticator->TurnedAway(address); },
          .take_calls = [gate = parts_->router.gate()] { return gate->TakeShown(); },
          .calls_of_connection = kCallsOfConnection,
          .on_hidden_calls =
              [authenticator = &parts_->authenticator](const std::string& address,
                                                       std::uint64_t calls) {
                authenticator->HiddenCalls(address, calls);
              },
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
  return parts_ == nullptr ? 0 : parts_->authenticator.refused();
}

}  // namespace muster::rendezvous
