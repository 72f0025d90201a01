#include "rendezvous/client/grpc_client.h"

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/channel.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "base/random_name.h"
#include "rendezvous/client/attend_stream.h"
#include "rendezvous/client/attendance.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/client/grpc_error.h"
#include "rendezvous/client/knocker.h"
#include "rendezvous/client/log_delivery_stream.h"
#include "rendezvous/net/grpc_runtime.h"
#include "rendezvous/wire/death_notice.h"
#include "rendezvous/wire/peer.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// 165 bits: enough that no other agent has it, and that nobody guesses it.
SessionToken NewSession() {
  return base::RandomName(32);
}

// A stream, a timer and a knocker, for what an Attendance decides.
class GrpcClient final : public RendezvousClient {
 public:
  GrpcClient(boost::asio::io_context& io, GrpcClientOptions options, Listener& listener)
      : io_(io),
        options_(std::move(options)),
        places_(EachOf(options_.endpoint)),
        listener_(listener),
        attendance_({.where = ToString(options_.endpoint),
                     .connect_timeout = options_.connect_timeout,
                     .reconnect_timeout = options_.reconnect_timeout,
                     .trust_refusals = options_.trust_refusals,
                     .places = static_cast<int>(places_.size()),
                     .new_session = NewSession,
                     .progress = [this](bool all) { return listener_.TakeProgress(all); },
                     .seed = std::random_device{}()}),
        timer_(io),
        knocker_(std::in_place, io,
                 [this](const SessionToken& session, KnockWord word, TimePoint sent) {
                   HandleKnockAnswer(session, word, sent);
                 }) {
    InitGrpcRuntime();
  }

  ~GrpcClient() override {
    if (stream_ != nullptr) stream_->Abandon();
  }

  void Join(const JoinRequest& request) override {
    attendance_.Join(request, Clock::now());
    Act();
  }

  std::optional<DeathNotice> death_notice() const override {
    const std::optional<tcp::endpoint> daemon = WhereItWas();
    if (!daemon || !attendance_.attends()) return std::nullopt;
    return DeathNotice{*daemon, FormatDeathNotice(attendance_.session())};
  }

  void WorkersStarted(RoundId round) override { Say(rendezvous::WorkersStarted{round}); }

  void WorkersExited(RoundId round, const WorkersOutcome& outcome) override {
    Say(rendezvous::WorkersExited{round, outcome});
  }

  std::unique_ptr<LogDelivery> DeliverLog(std::uint64_t delivery,
                                          LogDelivery::Handlers handlers) override {
    std::shared_ptr<grpc::Channel> channel = log_channel_.lock();
    if (channel == nullptr) log_channel_ = channel = MakeChannel(/*to_known_peer=*/true);
    return DeliverOverGrpc(io_, std::move(channel), delivery, std::move(handlers));
  }

  // The next keep-alive takes it along.
  void ProgressMade() override {}

  void Leaving(const std::string& reason) override { Say(rendezvous::Leaving{reason}); }

  void AskToLeave(RoundId round, const std::string& reason) override {
    Say(rendezvous::AskToLeave{round, reason});
  }

  void Leave(const std::string& reason, std::function<void()> left) override {
    left_ = std::move(left);
    attendance_.Leave(reason, Clock::now());
    Act();
  }

 private:
  void Say(Event event) {
    attendance_.Say(std::move(event));
    Act();
  }

  void HandleDirective(std::uint64_t connection, const v1::Directive& wire) {
    if (wire.has_welcome()) peer_ = stream_->peer();
    attendance_.OnDirective(connection, FromWire(wire), Clock::now());
    Act();
  }

  void HandleDone(std::uint64_t connection, const grpc::Status& status) {
    stream_ = nullptr;
    attendance_.OnConnectionEnded(
        connection, ReadConnectionError(status, options_.credentials.proof()), Clock::now());
    Act();
  }

  void HandleKnockAnswer(const SessionToken& session, KnockWord word, TimePoint sent) {
    if (word == KnockWord::kPaused) {
      attendance_.OnPaused(session, sent);
    } else {
      attendance_.OnGone(session, Clock::now());
    }
    Act();
  }

  // Carries out what the attendance has asked for. What the listener asks for while it is told
  // something comes after that, and not from within.
  void Act() {
    if (acting_) return;
    acting_ = true;
    const base::Lifetime::Watch watch = lifetime_.watch();
    while (std::optional<Attendance::Action> action = attendance_.NextAction()) {
      std::visit([this](auto& kind) { Do(kind); }, *action);
      // The listener may have destroyed this client.
      if (watch.over()) return;
    }
    acting_ = false;
    ArmTimer();
  }

  void ArmTimer() {
    const std::optional<TimePoint> due = attendance_.NextDeadline();
    if (due == armed_for_) return;
    armed_for_ = due;
    timer_.cancel();
    if (!due) return;
    timer_.expires_at(*due);
    timer_.async_wait(lifetime_.Guard([this, due](const boost::system::error_code& error) {
      // One that was queued when it was moved finds another time.
      if (error || armed_for_ != due) return;
      armed_for_.reset();
      attendance_.Tick(Clock::now());
      Act();
    }));
  }

  void Do(const Attendance::Connect& connect) {
    const std::uint64_t number = connect.connection;
    place_ = static_cast<std::size_t>(connect.place);
    stream_ = new AttendStream(
        io_, v1::Rendezvous::NewStub(MakeChannel(connect.to_known_peer)),
        {.on_directive = [this, number](const v1::Directive& d) { HandleDirective(number, d); },
         .on_done = [this, number](const grpc::Status& s) { HandleDone(number, s); }});
  }
  void Do(Attendance::Send& send) {
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
      stream_->Send(KeepAlive{.log_bytes_lost = listener_.LogBytesLost()});
    }
    stream_->Send(send.event);
  }
  void Do(const Attendance::FinishSending&) { stream_->FinishWriting(); }
  void Do(const Attendance::Abandon&) { std::exchange(stream_, nullptr)->Abandon(); }
  void Do(const Attendance::Knock& knock) {
    if (const auto daemon = WhereItWas()) knocker_->Knock(*daemon, knock.session, knock.secret);
  }
  void Do(const Attendance::Tell& tell) { listener_.OnDirective(tell.directive); }
  void Do(const Attendance::Trouble& trouble) { listener_.OnTrouble(trouble.sentence); }
  void Do(const Attendance::OutOfTouch& out) { listener_.OnOutOfTouch(out.cause); }
  void Do(const Attendance::BackInTouch& back) { listener_.OnBackInTouch(back.outage); }
  void Do(const Attendance::Deadline& deadline) { listener_.OnDeadline(deadline.time); }
  void Do(const Attendance::Fenced& fenced) { listener_.OnFenced(fenced.why); }
  void Do(const Attendance::Lost& lost) {
    knocker_.reset();
    listener_.OnLost(lost.status);
  }
  void Do(const Attendance::Left&) {
    knocker_.reset();
    boost::asio::post(io_, std::move(left_));
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

  Attendance attendance_;
  bool acting_ = false;
  std::uint64_t told_lost_ = 0;               // of the bytes that log files did not take
  AttendStream* stream_ = nullptr;            // deletes itself once gRPC is done with it
  std::size_t place_ = 0;                     // of the last connection
  std::string peer_;                          // where the daemon was found
  std::weak_ptr<grpc::Channel> log_channel_;  // while anything is delivered over it
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> armed_for_;
  std::optional<Knocker> knocker_;  // until the attendance is over
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
