#include "rendezvous/tunnel/tunnel_client.h"

#include <chrono>
#include <utility>

#include <grpcpp/channel.h>
#include <spdlog/spdlog.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "proto/tunnel.grpc.pb.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/client/grpc_error.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/tunnel/tunnel_stream.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// An agent that is told its place later than ours by more than this is in trouble.
constexpr std::chrono::seconds kPatience(5);
// The other end may be in the middle of its start; a listening socket without a process behind it
// is how a connection begins.
constexpr std::chrono::milliseconds kFirstReconnect(100);
constexpr std::chrono::milliseconds kLongestReconnect(1000);

// A call that does not wait for a connection, and so ends with the reason why there is none. It is
// released by Abandon or when it ends, and then deletes itself.
class Question final : public grpc::ClientBidiReactor<tunnel::v1::Chunk, tunnel::v1::Chunk> {
 public:
  using Answer = std::function<void(const grpc::Status&)>;

  Question(boost::asio::io_context& io, tunnel::v1::Tunnel::Stub& stub, Answer answer)
      : io_(io), stay_(io.get_executor()), answer_(std::move(answer)) {
    stub.async()->Carry(&context_, this);
    StartCall();
  }

  void Abandon() {
    answer_ = nullptr;
    context_.TryCancel();
  }

  void OnDone(const grpc::Status& status) override {
    boost::asio::post(io_, [self = std::unique_ptr<Question>(this), status] {
      if (self->answer_) self->answer_(status);
    });
  }

 private:
  boost::asio::io_context& io_;
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  Answer answer_;
  grpc::ClientContext context_;
};

}  // namespace

// The connection to the other agent.
struct TunnelClient::Line {
  explicit Line(const TunnelClientOptions& options)
      : stub(tunnel::v1::Tunnel::NewStub(OpenChannel(
            ChannelTarget(options.store), options.credentials,
            {.first_reconnect = kFirstReconnect,
             .longest_reconnect = kLongestReconnect,
             .host = options.store.host,
             .peer_silence =
                 std::chrono::seconds(static_cast<int>(limits::kTunnelSilentSeconds.most))}))) {}

  std::unique_ptr<tunnel::v1::Tunnel::Stub> stub;
  Question* question = nullptr;
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

TunnelClient::~TunnelClient() {
  for (TunnelStream* const stream : streams_) stream->Abandon();
  if (line_ != nullptr && line_->question != nullptr) line_->question->Abandon();
}

void TunnelClient::Take(tcp::socket worker) {
  if (!own_users_.Allow(worker)) {
    ++refused_;
    return;
  }
  if (line_ == nullptr) {
    line_ = std::make_unique<Line>(options_);
    AwaitAnswer();
  }
  // Known to the handlers by a place that is filled when it exists.
  const auto self = std::make_shared<TunnelStream*>(nullptr);
  *self = new TunnelStream(
      io_, *line_->stub, open_, std::move(worker), buffer_,
      {.on_answered = [this] { OnAnswered(); },
       .on_done = [this, self](const grpc::Status& status) { OnDone(*self, status); }});
  streams_.insert(*self);
}

void TunnelClient::OnAnswered() {
  answered_ = true;
  if (Question* const question = std::exchange(line_->question, nullptr)) question->Abandon();
}

void TunnelClient::OnDone(TunnelStream* stream, const grpc::Status& status) {
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

void TunnelClient::AwaitAnswer() {
  patience_.expires_after(kPatience);
  patience_.async_wait(lifetime_.Guard([this](const boost::system::error_code&) {
    if (!answered_ && !streams_.empty()) AskWhy();
  }));
}

void TunnelClient::AskWhy() {
  line_->question = new Question(io_, *line_->stub, [this](const grpc::Status& status) {
    line_->question = nullptr;
    if (answered_ || std::exchange(told_, true)) return;
    spdlog::warn("workers wait for the workers' store at {}: {}", ToString(options_.store),
                 ReadConnectionError(status, options_.credentials.proof()).cause);
  });
}

}  // namespace muster::rendezvous
