#include "rendezvous/client/rendezvous_client.h"

#include <random>
#include <utility>
#include <vector>

#include <grpcpp/channel.h>
#include <boost/asio/post.hpp>

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "base/text.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/agent_session.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/client/probes.h"
#include "rendezvous/net/client_stream.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/net/peer.h"
#include "rendezvous/wire/liveness_probe.h"
#include "rendezvous/wire/wire.h"
#include "rendezvous/wire/worker_wire.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// 165 bits: enough that no other agent has it, and that nobody guesses it.
SessionToken NewSession() {
  return base::RandomName(32);
}

// Over a channel that should not be the one over which the agent attends: what waits to be sent
// here must not hold up its beats.
class GrpcLogDelivery final : public LogDelivery {
 public:
  GrpcLogDelivery(boost::asio::io_context& io, std::shared_ptr<grpc::Channel> channel,
                  std::uint64_t delivery, Handlers handlers)
      : handlers_(std::move(handlers)), stream_(Stream::Make(io)) {
    v1::Rendezvous::NewStub(std::move(channel))
        ->async()
        ->DeliverLog(&stream_->context(), stream_.get());
    v1::LogDelivery first;
    first.set_delivery(delivery);
    stream_->Send(std::move(first));
    // Nothing is answered. Copies of the handlers, as they may destroy this.
    stream_->Start({.on_written =
                        [this](bool ok) {
                          const auto call = handlers_.on_ready;
                          if (ok && !is_finished_) call();
                        },
                    .on_done =
                        [this](const grpc::Status&) {
                          const auto call = handlers_.on_over;
                          call();
                        }});
  }

  void Send(LogPart part) override {
    v1::LogDelivery wire;
    ToWire(part, &wire);
    stream_->Send(std::move(wire));
  }
  void Finish() override {
    is_finished_ = true;
    v1::LogDelivery end;
    end.set_end(true);
    stream_->Send(std::move(end));
  }

 private:
  using Stream = ClientStream<v1::LogDelivery, v1::LogTaken>;

  const Handlers handlers_;
  bool is_finished_ = false;
  const Stream::Owner stream_;
};

// A stream, a timer and a knocker, for what an AgentSession decides.
class GrpcClient final : public RendezvousClient {
 public:
  GrpcClient(boost::asio::io_context& io, GrpcClientOptions options, Listener& listener)
      : io_(io),
        options_(std::move(options)),
        places_(EachOf(options_.endpoint)),
        listener_(listener),
        agent_session_({.where = ToString(options_.endpoint),
                        .connect_timeout = options_.connect_timeout,
                        .reconnect_timeout = options_.reconnect_timeout,
                        .trust_refusals = options_.trust_refusals,
                        .places = static_cast<int>(places_.size()),
                        .new_session = NewSession,
                        .progress = [this](bool all) { return listener_.TakeProgress(all); },
                        .seed = std::random_device{}()}),
        timer_(io),
        prober_(std::in_place, io,
                [this](const SessionToken& session, ProbeWord word, TimePoint sent) {
                  HandleKnockAnswer(session, word, sent);
                }) {
    InitGrpcRuntime();
  }

  void Join(const JoinRequest& request) override {
    agent_session_.Join(request, Clock::now());
    Act();
  }

  std::optional<DeathNotice> death_notice() const override {
    const std::optional<tcp::endpoint> daemon = WhereItWas();
    if (!daemon || !agent_session_.attends()) return std::nullopt;
    return DeathNotice{*daemon, FormatDeathNotice(agent_session_.session())};
  }

  void Say(Event event) override {
    agent_session_.Say(std::move(event));
    Act();
  }

  std::unique_ptr<LogDelivery> DeliverLog(std::uint64_t delivery,
                                          LogDelivery::Handlers handlers) override {
    std::shared_ptr<grpc::Channel> channel = log_channel_.lock();
    if (channel == nullptr) log_channel_ = channel = MakeChannel(/*to_known_peer=*/true);
    return std::make_unique<GrpcLogDelivery>(io_, std::move(channel), delivery,
                                             std::move(handlers));
  }

  // The next keep-alive takes it along.
  void ProgressMade() override {}

  void Leave(const std::string& reason, std::function<void()> left) override {
    left_ = std::move(left);
    agent_session_.Leave(reason, Clock::now());
    Act();
  }

 private:
  using Stream = ClientStream<v1::AgentEvent, v1::Directive>;

  void HandleDirective(std::uint64_t connection, const v1::Directive& wire) {
    // "ipv4:10.0.0.1:29400".
    if (wire.has_welcome()) peer_ = stream_->context().peer();
    agent_session_.OnDirective(connection, FromWire(wire), Clock::now());
    Act();
  }

  void HandleDone(std::uint64_t connection, const grpc::Status& status) {
    stream_.reset();
    const ConnectionError error = ReadConnectionError(status, options_.credentials.proof());
    if (!error.is_in_doubt) return HandleEnded(connection, error);
    ProbeListener(io_, places_[place_],
                  lifetime_.Guard([this, connection, error](const std::string& speaks) {
                    HandleEnded(connection, Recognized(error, speaks));
                  }));
  }

  void HandleEnded(std::uint64_t connection, const ConnectionError& error) {
    agent_session_.OnConnectionEnded(connection, error, Clock::now());
    Act();
  }

  void HandleKnockAnswer(const SessionToken& session, ProbeWord word, TimePoint sent) {
    if (word == ProbeWord::kPaused) {
      agent_session_.OnPaused(session, sent);
    } else {
      agent_session_.OnGone(session, Clock::now());
    }
    Act();
  }

  // Carries out what the session has asked for. What the listener asks for while it is told
  // something comes after that, and not from within.
  void Act() {
    if (acting_) return;
    acting_ = true;
    const base::Lifetime::Watch watch = lifetime_.watch();
    while (std::optional<AgentSession::Action> action = agent_session_.NextAction()) {
      std::visit([this](auto& kind) { Do(kind); }, *action);
      // The listener may have destroyed this client.
      if (watch.over()) return;
    }
    acting_ = false;
    timer_.Follow(agent_session_.NextDeadline(), [this] {
      agent_session_.Tick(Clock::now());
      Act();
    });
  }

  void Do(const AgentSession::Connect& connect) {
    const std::uint64_t number = connect.connection;
    place_ = static_cast<std::size_t>(connect.place);
    stream_ = Stream::Make(io_);
    v1::Rendezvous::NewStub(MakeChannel(connect.to_known_peer))
        ->async()
        ->Attend(&stream_->context(), stream_.get());
    stream_->Start(
        {.on_read = [this, number](const v1::Directive& d) { HandleDirective(number, d); },
         .on_done = [this, number](const grpc::Status& s) { HandleDone(number, s); }});
  }
  // There is none once a connection has ended, while it is looked up who answers there instead.
  void Do(AgentSession::Send& send) {
    if (stream_ == nullptr) return;
    if (auto* const beat = std::get_if<KeepAlive>(&send.event)) {
      beat->log_bytes_lost = told_lost_ = listener_.LogBytesLost();
    }
    if (auto* const exited = std::get_if<rendezvous::WorkersExited>(&send.event)) {
      // Said again, it is longer ago.
      exited->failed_ago = FailedAgo(listener_, exited->outcome, Clock::now());
    }
    // What was lost since the last beat.
    const bool is_last = std::holds_alternative<Goodbye>(send.event);
    if (is_last && listener_.LogBytesLost() != told_lost_) {
      Write(KeepAlive{.log_bytes_lost = listener_.LogBytesLost()});
    }
    Write(send.event);
  }
  void Do(const AgentSession::FinishSending&) {
    if (stream_ != nullptr) stream_->EndSending();
  }
  void Do(const AgentSession::Abandon&) { stream_.reset(); }
  void Do(const AgentSession::LivenessProbe& probe) {
    if (const auto daemon = WhereItWas()) prober_->Probe(*daemon, probe.session, probe.secret);
  }
  void Do(const AgentSession::Tell& tell) { listener_.OnDirective(tell.directive); }
  void Do(const AgentSession::Trouble& trouble) { listener_.OnTrouble(trouble.sentence); }
  void Do(const AgentSession::OutOfTouch& out) { listener_.OnOutOfTouch(out.cause); }
  void Do(const AgentSession::BackInTouch& back) { listener_.OnBackInTouch(back.outage); }
  void Do(const AgentSession::Deadline& deadline) { listener_.OnDeadline(deadline.time); }
  void Do(const AgentSession::Fenced& fenced) { listener_.OnFenced(fenced.why); }
  void Do(const AgentSession::Lost& lost) {
    prober_.reset();
    listener_.OnLost(lost.status);
  }
  void Do(const AgentSession::Left&) {
    prober_.reset();
    boost::asio::post(io_, std::move(left_));
  }

  void Write(const Event& event) {
    v1::AgentEvent wire;
    ToWire(event, &wire);
    stream_->Send(std::move(wire));
  }

  // A new one for each attempt: the TCP connection of an old one may be the very thing that is
  // wrong.
  std::shared_ptr<grpc::Channel> MakeChannel(bool to_known_peer) const {
    const Endpoint& place = places_[place_];
    return OpenChannel(to_known_peer && !peer_.empty() ? peer_ : ChannelTarget(place),
                       options_.credentials, {.host = place.host});
  }

  std::optional<tcp::endpoint> WhereItWas() const {
    const Peer peer = ParsePeer(peer_);
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(peer.address, error);
    if (error) return std::nullopt;
    return tcp::endpoint(address, peer.port);
  }

  boost::asio::io_context& io_;
  const GrpcClientOptions options_;
  const std::vector<Endpoint> places_;
  Listener& listener_;

  AgentSession agent_session_;
  bool acting_ = false;
  std::uint64_t told_lost_ = 0;  // of the bytes that log files did not take
  Stream::Owner stream_;
  std::size_t place_ = 0;                     // of the last connection
  std::string peer_;                          // where the daemon was found
  std::weak_ptr<grpc::Channel> log_channel_;  // while anything is delivered over it
  base::Timer timer_;
  std::optional<Prober> prober_;  // until the session is over
  std::function<void()> left_;
  const base::Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<RendezvousClient> MakeGrpcClient(boost::asio::io_context& io,
                                                 GrpcClientOptions options,
                                                 RendezvousClient::Listener& listener) {
  return std::make_unique<GrpcClient>(io, std::move(options), listener);
}

}  // namespace muster::rendezvous
