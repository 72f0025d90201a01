#include "rendezvous/client/grpc_client.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/core/phrases.h"
#include "rendezvous/grpc_runtime.h"
#include "rendezvous/wire/printable.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What the daemon reads of a reason.
constexpr std::size_t kMaxReason = 256;
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{1000};
// A daemon whose host has lost its power does not end the stream: unanswered pings do.
constexpr int kPingEveryMs = 10'000;
constexpr int kPingTimeoutMs = 5'000;

// What gRPC wraps around the cause is for those who debug gRPC: "failed to connect to all
// addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection
// refused".
std::string Cause(const grpc::Status& status) {
  std::string cause = status.error_message();
  if (cause.starts_with("DNS resolution failed")) {
    return absl::StrCat("its name does not resolve", cause.substr(cause.rfind(": ")));
  }
  for (const char* wrapping :
       {"last error: ", "UNKNOWN: ", "UNAVAILABLE: ", "Failed to connect to remote host: "}) {
    if (const std::size_t at = cause.find(wrapping); at != std::string::npos) {
      cause = cause.substr(at + std::char_traits<char>::length(wrapping));
    }
  }
  return cause.empty() ? "the connection ended" : cause;
}

// One attempt's stream. gRPC's callbacks run on its threads and post; all else is the loop's. Its
// owner lets go of it with Abandon, and it deletes itself after OnDone.
class Stream final : public grpc::ClientBidiReactor<v1::AgentEvent, v1::Directive> {
 public:
  struct Handlers {
    std::function<void(const v1::Directive&)> on_directive;
    std::function<void(const grpc::Status&)> on_done;
  };

  Stream(boost::asio::io_context& io, v1::Rendezvous::Stub& stub, Handlers handlers)
      : io_(io), stay_(io.get_executor()), handlers_(std::move(handlers)) {
    stub.async()->Attend(&context_, this);
    StartRead(&directive_);
    // Holds the stream open for writes that come from the loop.
    AddHold();
    StartCall();
  }

  void Send(v1::AgentEvent event) {
    if (last_sent_) return;
    unsent_.push_back(std::move(event));
    if (!writing_) WriteNext();
  }

  // Ends our side once all has been written, and sends nothing any more; on_done follows when the
  // daemon has heard it.
  void FinishWriting() {
    last_sent_ = true;
    if (!writing_) WriteNext();
  }

  // No handler is called any more; the stream is cut.
  void Abandon() {
    handlers_ = {};
    context_.TryCancel();
    Release();
  }

  void OnReadDone(bool ok) override {
    boost::asio::post(io_, [this, ok] { HandleRead(ok); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(io_, [this, ok] { HandleWritten(ok); });
  }
  void OnDone(const grpc::Status& status) override {
    boost::asio::post(io_, [self = std::unique_ptr<Stream>(this), status] {
      if (const auto handle = self->handlers_.on_done) handle(status);
    });
  }

 private:
  void HandleRead(bool ok) {
    // The daemon's side has ended; without our hold the call ends, too.
    if (!ok) return Release();
    // A copy, as the handler may abandon us.
    if (const auto handle = handlers_.on_directive) handle(directive_);
    // Without our hold gRPC may be done with the call already.
    if (!released_) StartRead(&directive_);
  }

  void HandleWritten(bool ok) {
    writing_ = false;
    unsent_.pop_front();
    if (ok) WriteNext();
  }

  void WriteNext() {
    if (released_) return;
    if (!unsent_.empty()) {
      writing_ = true;
      StartWrite(&unsent_.front());
    } else if (last_sent_ && !writes_done_) {
      writes_done_ = true;
      StartWritesDone();
    }
  }

  void Release() {
    if (released_) return;
    released_ = true;
    RemoveHold();
  }

  boost::asio::io_context& io_;
  // gRPC's threads post until OnDone: the loop must not run dry before.
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  Handlers handlers_;

  grpc::ClientContext context_;
  v1::Directive directive_;  // gRPC's between StartRead and OnReadDone
  std::deque<v1::AgentEvent> unsent_;
  bool writing_ = false;  // unsent_.front() is gRPC's
  bool last_sent_ = false;
  bool writes_done_ = false;
  bool released_ = false;
};

class GrpcClient final : public RendezvousClient {
 public:
  GrpcClient(boost::asio::io_context& io, GrpcClientOptions options, Listener& listener)
      : io_(io),
        options_(std::move(options)),
        listener_(listener),
        pause_timer_(io),
        connect_timer_(io),
        beat_timer_(io),
        random_(std::random_device{}()) {
    InitGrpcRuntime();
    grpc::ChannelArguments arguments;
    // The cluster's own traffic, whatever http_proxy says.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // No ping to measure the bandwidth with every message, as in server.cc.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    // Attempts are repeated here, with our pauses; gRPC's own, up to two minutes, would come on
    // top.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstPause.count());
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kFirstPause.count());
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestPause.count());
    // The scheme is spelled out, or a host called "unix" would be taken for one.
    channel_ = grpc::CreateCustomChannel("dns:///" + ToString(options_.endpoint),
                                         options_.credentials.ForClient(), arguments);
    stub_ = v1::Rendezvous::NewStub(channel_);
  }

  ~GrpcClient() override { LetGo(); }

  void Join(const JoinRequest& request) override {
    v1::AgentEvent event;
    ToWire(request, event.mutable_join());
    if (welcomed_) return Send(std::move(event));
    first_join_ = std::move(event);
    connect_timer_.expires_after(options_.connect_timeout);
    OnExpiry(connect_timer_, [this] {
      if (!welcomed_) GiveUp();
    });
    Connect();
  }

  void WorkersStarted(RoundNumber round) override {
    v1::AgentEvent event;
    event.mutable_workers_started()->set_round(round);
    Send(std::move(event));
  }

  void WorkersExited(RoundNumber round, const WorkersOutcome& outcome) override {
    v1::AgentEvent event;
    ToWire(outcome, round, event.mutable_workers_exited());
    Send(std::move(event));
  }

  void Leaving(const std::string& reason) override {
    v1::AgentEvent event;
    event.mutable_leaving()->set_reason(OneLine(reason, kMaxReason));
    Send(std::move(event));
  }

  void Leave(const std::string& reason, std::function<void()> left) override {
    left_ = std::move(left);
    connect_timer_.cancel();
    pause_timer_.cancel();
    beat_timer_.cancel();
    if (stream_ == nullptr || !welcomed_) {
      LetGo();
      boost::asio::post(io_, std::move(left_));
      return;
    }
    v1::AgentEvent event;
    event.mutable_goodbye()->set_reason(OneLine(reason, kMaxReason));
    Send(std::move(event));
    stream_->FinishWriting();
  }

 private:
  void Connect() {
    stream_ = new Stream(io_, *stub_,
                         {.on_directive = [this](const v1::Directive& d) { HandleDirective(d); },
                          .on_done = [this](const grpc::Status& s) { HandleDone(s); }});
    stream_->Send(first_join_);
  }

  void HandleDirective(const v1::Directive& wire) {
    const Directive directive = FromWire(wire);
    if (!welcomed_) {
      welcomed_ = true;
      connect_timer_.cancel();
    }
    if (const auto* welcome = std::get_if<Welcome>(&directive)) {
      keep_alive_ = welcome->keep_alive;
      if (keep_alive_ > Duration::zero()) ScheduleBeat();
    }
    // After Leave only the stream's end is waited for.
    if (!left_) listener_.OnDirective(directive);
  }

  void HandleDone(const grpc::Status& status) {
    stream_ = nullptr;
    beat_timer_.cancel();
    if (left_) {
      std::exchange(left_, nullptr)();
      return;
    }
    last_error_ = Cause(status);
    if (welcomed_) {
      listener_.OnLost(absl::UnavailableError(absl::StrCat(
          "the rendezvous at ", ToString(options_.endpoint), " is gone: ", last_error_)));
      return;
    }
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      last_error_ = "what answers there is no Muster rendezvous";
      return GiveUp();
    }
    TryAgain();
  }

  void TryAgain() {
    // Half of the pause is left to chance, so that a thousand nodes do not come back as one.
    std::uniform_real_distribution<double> chance(0.5, 1.0);
    pause_timer_.expires_after(
        std::chrono::duration_cast<Clock::duration>(pause_ * chance(random_)));
    pause_ = std::min(pause_ * 2, kLongestPause);
    OnExpiry(pause_timer_, [this] { Connect(); });
    if (std::exchange(troubled_, true)) return;
    listener_.OnTrouble(absl::StrCat("cannot reach the rendezvous at ", ToString(options_.endpoint),
                                     " yet: ", last_error_, "; trying for ",
                                     Seconds(options_.connect_timeout)));
  }

  void GiveUp() {
    LetGo();
    listener_.OnLost(absl::UnavailableError(
        absl::StrCat("cannot reach the rendezvous at ", ToString(options_.endpoint), " within ",
                     Seconds(options_.connect_timeout), ": ",
                     last_error_.empty() ? "it does not answer" : last_error_)));
  }

  void Send(v1::AgentEvent event) {
    if (stream_ != nullptr) stream_->Send(std::move(event));
  }

  void ScheduleBeat() {
    beat_timer_.expires_after(keep_alive_);
    OnExpiry(beat_timer_, [this] {
      if (stream_ == nullptr) return;
      v1::AgentEvent event;
      event.mutable_keep_alive();
      Send(std::move(event));
      ScheduleBeat();
    });
  }

  // Has `then` called when the timer expires, unless it is cancelled or we let go before. (Cancel
  // alone does not stop a handler that is queued already.)
  template <typename Then>
  void OnExpiry(boost::asio::steady_timer& timer, Then then) {
    timer.async_wait(
        [then, alive = std::weak_ptr<void>(alive_)](const boost::system::error_code& error) {
          if (!error && !alive.expired()) then();
        });
  }

  // Nothing comes of what was begun: this client is done.
  void LetGo() {
    alive_.reset();
    connect_timer_.cancel();
    pause_timer_.cancel();
    beat_timer_.cancel();
    if (stream_ != nullptr) std::exchange(stream_, nullptr)->Abandon();
  }

  boost::asio::io_context& io_;
  const GrpcClientOptions options_;
  Listener& listener_;

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Rendezvous::Stub> stub_;
  Stream* stream_ = nullptr;  // deletes itself once gRPC is done with it
  boost::asio::steady_timer pause_timer_;
  boost::asio::steady_timer connect_timer_;
  boost::asio::steady_timer beat_timer_;
  std::minstd_rand random_;

  v1::AgentEvent first_join_;
  milliseconds pause_ = kFirstPause;
  std::string last_error_;
  bool troubled_ = false;
  bool welcomed_ = false;
  Duration keep_alive_{};
  std::function<void()> left_;
  // Reset once timers and streams are no concern of ours any more.
  std::shared_ptr<void> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<RendezvousClient> MakeGrpcClient(boost::asio::io_context& io,
                                                 GrpcClientOptions options,
                                                 RendezvousClient::Listener& listener) {
  return std::make_unique<GrpcClient>(io, std::move(options), listener);
}

}  // namespace muster::rendezvous
