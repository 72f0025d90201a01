#include "rendezvous/client/tunnel_client.h"

#include <chrono>
#include <string_view>
#include <utility>

#include <grpcpp/channel.h>
#include <spdlog/spdlog.h>

#include "proto/tunnel.grpc.pb.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/net/client_stream.h"
#include "rendezvous/net/relay.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// An agent that is told its place later than ours by more than this is in trouble.
constexpr std::chrono::seconds kTunnelPatience(5);
// The other end may be in the middle of its start; a listening socket without a process behind it
// is how a connection begins.
constexpr std::chrono::milliseconds kTunnelFirstReconnect(100);
constexpr std::chrono::milliseconds kLongestReconnect(1000);

using Call = ClientStream<tunnel::v1::Chunk, tunnel::v1::Chunk>;

}  // namespace

// The connection to the other agent.
struct TunnelClient::Line {
  explicit Line(const TunnelClientOptions& options)
      : stub(tunnel::v1::Tunnel::NewStub(OpenChannel(
            ChannelTarget(options.store), options.credentials,
            {.first_reconnect = kTunnelFirstReconnect,
             .longest_reconnect = kLongestReconnect,
             .host = options.store.host,
             .peer_silence =
                 std::chrono::seconds(static_cast<int>(limits::kTunnelSilentSeconds.most))}))) {}

  std::unique_ptr<tunnel::v1::Tunnel::Stub> stub;
  // One that does not wait for a connection, and so ends with the reason why there is none.
  Call::Owner question;
};

// A worker's connection at its own end of a tunnel. Waits for the channel to be connected, for as
// long as that takes. Destroying it resets the connection and cuts the call.
class TunnelClient::Stream final : private ByteStream {
 public:
  Stream(TunnelClient& client, Relay::Socket worker)
      : call_(Call::Make(client.io_)), relay_(std::move(worker), *this, client.buffer_) {
    call_->context().set_wait_for_ready(true);
    client.line_->stub->async()->Carry(&call_->context(), call_.get());
    tunnel::v1::Chunk open;
    *open.mutable_open() = client.open_;
    call_->Send(std::move(open));
    // The relay says when to read.
    call_->Pause();
    call_->Start({.on_accepted = [&client] { client.OnAnswered(); },
                  .on_read = [this](tunnel::v1::Chunk& chunk) { HandleRead(chunk); },
                  .on_written = [this](bool ok) { HandleWritten(ok); },
                  .on_done =
                      [this, &client](const grpc::Status& status) {
                        relay_.OnBroken();
                        client.OnDone(this, status);
                      }});
  }
  ~Stream() { relay_.OnBroken(); }

 private:
  void HandleRead(tunnel::v1::Chunk& chunk) {
    call_->Pause();
    if (chunk.end()) return relay_.OnEnd();
    relay_.OnBytes(std::move(*chunk.mutable_data()));
  }
  void HandleWritten(bool ok) {
    if (!ok) {
      relay_.OnBroken();
      return call_->End();
    }
    if (std::exchange(opened_, true)) return relay_.OnWritten();
    if (!relay_.over()) relay_.Start();
  }

  // ByteStream.
  void Read() override { call_->Resume(); }
  void Write(std::string_view bytes) override {
    tunnel::v1::Chunk chunk;
    chunk.set_data(bytes.data(), bytes.size());
    call_->Send(std::move(chunk));
  }
  void WriteEnd() override {
    tunnel::v1::Chunk chunk;
    chunk.set_end(true);
    call_->Send(std::move(chunk));
  }
  void Finish() override { call_->End(); }
  void Abort() override { call_->Cancel(); }

  const Call::Owner call_;
  bool opened_ = false;  // the Open is written, and the relay has begun
  Relay relay_;
};

TunnelClient::TunnelClient(boost::asio::io_context& io, TunnelClientOptions options)
    : io_(io),
      options_(std::move(options)),
      buffer_(limits::kTunnelChunkBytes.most),
      patience_(io),
      acceptor_(
          io,
          [this](tcp::socket worker, const boost::asio::ip::address&) { Take(std::move(worker)); },
          [this] { return streams_.size() < limits::kTunnelStreams.most; }) {
  ToWire(options_.round, &open_);
}

TunnelClient::~TunnelClient() = default;

void TunnelClient::Take(tcp::socket worker) {
  if (!own_users_.Allow(worker)) {
    ++refused_;
    return;
  }
  if (line_ == nullptr) {
    line_ = std::make_unique<Line>(options_);
    patience_.After(kTunnelPatience, [this] {
      if (!answered_ && !streams_.empty()) AskWhy();
    });
  }
  auto stream = std::make_unique<Stream>(*this, std::move(worker));
  streams_.emplace(stream.get(), std::move(stream));
}

void TunnelClient::OnAnswered() {
  answered_ = true;
  line_->question.reset();
}

void TunnelClient::OnDone(Stream* stream, const grpc::Status& status) {
  streams_.erase(stream);
  acceptor_.Resume();
  if (told_) return;
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::CANCELLED:  // by the worker's own end
    case grpc::StatusCode::ABORTED:    // by the store, which says why where it is
      return;
    case grpc::StatusCode::UNAVAILABLE:
      break;
    default:
      told_ = true;
      spdlog::warn("{}; the worker's connection was reset",
                   std::string(ExplainFailure(status, {.endpoint = options_.store,
                                                       .credentials = options_.credentials})
                                   .message()));
      return;
  }
  // The end of a round, and of a node, is for others to tell.
  spdlog::info("a worker's connection to the workers' store at {} broke: {}",
               ToString(options_.store),
               ReadConnectionError(status, options_.credentials.proof()).cause);
}

void TunnelClient::AskWhy() {
  line_->question = Call::Make(io_);
  line_->stub->async()->Carry(&line_->question->context(), line_->question.get());
  line_->question->Start({.on_done = [this](const grpc::Status& status) {
    line_->question.reset();
    if (answered_ || std::exchange(told_, true)) return;
    spdlog::warn("workers wait for the workers' store at {}: {}", ToString(options_.store),
                 ReadConnectionError(status, options_.credentials.proof()).cause);
  }});
}

}  // namespace muster::rendezvous
