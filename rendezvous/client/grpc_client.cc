#include "rendezvous/client/grpc_client.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/create_channel.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rendezvous/client/attend_stream.h"
#include "rendezvous/client/connection_error.h"
#include "rendezvous/client/lease_keeper.h"
#include "rendezvous/core/phrases.h"
#include "rendezvous/grpc_runtime.h"
#include "rendezvous/wire/death_notice.h"
#include "rendezvous/wire/peer.h"
#include "rendezvous/wire/printable.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{1000};
// For one attempt to connect: a SYN that is lost is sent again after one second.
constexpr int kConnectAttemptMs = 2000;
// For an attempt to come back, from the first SYN to the daemon's answer.
constexpr std::chrono::seconds kLongestAttempt(5);
// For the daemon to hear the goodbye.
constexpr std::chrono::seconds kLongestGoodbye(5);
// A daemon whose host has lost its power does not end the stream: unanswered pings do.
constexpr int kPingEveryMs = 10'000;
constexpr int kPingTimeoutMs = 5'000;

SessionToken NewSession() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

class GrpcClient final : public RendezvousClient {
 public:
  GrpcClient(boost::asio::io_context& io, GrpcClientOptions options, Listener& listener)
      : io_(io),
        options_(std::move(options)),
        listener_(listener),
        session_(NewSession()),
        pause_timer_(io),
        patience_timer_(io),
        beat_timer_(io),
        watch_timer_(io),
        random_(std::random_device{}()) {
    InitGrpcRuntime();
  }

  ~GrpcClient() override { LetGo(); }

  void Join(const JoinRequest& request) override {
    JoinRequest with_session = request;
    with_session.session = session_;
    // Rounds that another attendance ran are none of this one's.
    if (!attended_) with_session.after = kNoRound;
    with_session.connection = connection_;
    said_.clear();
    asked_at_ = Clock::now();
    Say(std::move(with_session));
    if (stream_ != nullptr || pausing_) return;
    BePatient(answered_ ? options_.reconnect_timeout : options_.connect_timeout);
    Connect();
  }

  std::optional<DeathNotice> death_notice() const override {
    const Peer peer = ParsePeer(peer_);
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(peer.address, error);
    if (error || !attended_) return std::nullopt;
    return DeathNotice{{address, peer.port}, FormatDeathNotice(session_)};
  }

  void WorkersStarted(RoundId round) override { Say(rendezvous::WorkersStarted{round}); }

  void WorkersExited(RoundId round, const WorkersOutcome& outcome) override {
    Say(rendezvous::WorkersExited{round, outcome});
  }

  void Leaving(const std::string& reason) override { Say(rendezvous::Leaving{reason}); }

  void Leave(const std::string& reason, std::function<void()> left) override {
    left_ = std::move(left);
    pause_timer_.cancel();
    beat_timer_.cancel();
    watch_timer_.cancel();
    if (stream_ == nullptr || !open_ || !attended_) {
      LetGo();
      boost::asio::post(io_, std::move(left_));
      return;
    }
    stream_->Send(Goodbye{reason});
    stream_->FinishWriting();
    patience_timer_.expires_after(kLongestGoodbye);
    OnExpiry(patience_timer_, [this] {
      LetGo();
      std::exchange(left_, nullptr)();
    });
  }

 private:
  // To be said now, and again on each connection until the next Join.
  void Say(Event event) {
    if (stream_ != nullptr && open_) stream_->Send(event);
    said_.push_back(std::move(event));
  }

  void Connect() {
    pausing_ = false;
    attempt_began_ = asked_at_ = Clock::now();
    stream_ =
        new AttendStream(io_, v1::Rendezvous::NewStub(MakeChannel()),
                         {.on_directive = [this](const v1::Directive& d) { HandleDirective(d); },
                          .on_done = [this](const grpc::Status& s) { HandleDone(s); }});
    // What was said is said again once the daemon has taken us back: it may not know us any more.
    open_ = !attended_;
    ++connection_;
    for (Event& event : said_) {
      if (auto* join = std::get_if<JoinRequest>(&event)) join->connection = connection_;
    }
    if (attended_) {
      stream_->Send(Resume{session_, connection_});
    } else {
      for (const Event& event : said_) stream_->Send(event);
    }
    ArmWatch();
  }

  // A new one for each attempt: the TCP connection of an old one may be the very thing that is
  // wrong.
  std::shared_ptr<grpc::Channel> MakeChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // The cluster's own traffic, whatever http_proxy says.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // No ping to measure the bandwidth with every message, as in server.cc.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectAttemptMs);
    // The scheme is spelled out, or a host called "unix" would be taken for one. A name that no
    // longer resolves is where it was.
    const std::string target =
        unresolved_ && !peer_.empty() ? peer_ : "dns:///" + ToString(options_.endpoint);
    return grpc::CreateCustomChannel(target, options_.credentials.ForClient(), arguments);
  }

  void HandleDirective(const v1::Directive& wire) {
    const Directive directive = FromWire(wire);
    if (!std::exchange(answered_, true)) patience_timer_.cancel();
    if (const auto* heard = std::get_if<Heard>(&directive)) {
      keeper_.OnHeard(heard->number);
      MoveDeadline();
      return TellHeld();
    }
    if (const auto* welcome = std::get_if<Welcome>(&directive)) HandleWelcome(*welcome);
    if (std::holds_alternative<Evicted>(directive)) HandleEvicted();
    over_ = over_ || std::holds_alternative<Refused>(directive);
    const bool ends =
        std::holds_alternative<Refused>(directive) || std::holds_alternative<Evicted>(directive);
    if (ends) held_.clear();
    const bool starts = std::holds_alternative<Assignment>(directive);
    if (!held_.empty() || (starts && LeaseIsShort())) {
      held_.push_back(directive);
    } else {
      Tell(directive);
    }
  }

  // Workers that are started on a lease which is about to end would be killed at once. So it is:
  // when it took long to connect, or when this process stood still. The next beat that is answered
  // tells.
  bool LeaseIsShort() const {
    const std::optional<TimePoint> deadline = keeper_.deadline();
    return deadline && Clock::now() + lease_ / 3 > *deadline;
  }

  void TellHeld() {
    if (held_.empty() || LeaseIsShort()) return;
    const std::weak_ptr<void> alive = alive_;
    for (const Directive& directive : std::exchange(held_, {})) {
      // The listener may end the attendance, and this client with it.
      if (!alive.expired()) Tell(directive);
    }
  }

  void Tell(const Directive& directive) {
    // After Leave only the stream's end is waited for.
    if (!left_) listener_.OnDirective(directive);
  }

  void HandleWelcome(const Welcome& welcome) {
    durable_ = welcome.durable;
    lease_ = welcome.lease;
    keep_alive_ = welcome.keep_alive;
    peer_ = stream_->peer();
    pause_ = kFirstPause;
    keeper_.OnNewConnection();
    keeper_.OnWelcome(welcome.lease, welcome.durable, asked_at_);
    attended_ = true;
    if (!std::exchange(open_, true)) {
      for (const Event& event : said_) stream_->Send(event);
    }
    // The first beat comes at once: over a long way the answer to the Join has used up much of the
    // lease.
    if (keep_alive_ > Duration::zero()) Beat();
    MoveDeadline();
    EndOutage();
  }

  // Whatever it was said to this attendance goes with it; the next Join begins another. The
  // deadline stays: workers that run must be dead by then.
  void HandleEvicted() {
    attended_ = false;
    open_ = true;
    session_ = NewSession();
    said_.clear();
    keeper_ = {};
    beat_timer_.cancel();
    ArmWatch();
    EndOutage();
  }

  void EndOutage() {
    if (!outage_began_ || left_) return;
    patience_timer_.cancel();
    const Duration outage = Clock::now() - *std::exchange(outage_began_, std::nullopt);
    listener_.OnBackInTouch(outage);
  }

  void HandleDone(const grpc::Status& status) {
    stream_ = nullptr;
    beat_timer_.cancel();
    if (left_) {
      LetGo();
      std::exchange(left_, nullptr)();
      return;
    }
    if (over_) return LetGo();
    if (!answered_ && status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      last_error_ = "what answers there is no Muster rendezvous";
      return GiveUp();
    }
    HandleBroken(ReadConnectionError(status));
  }

  void HandleBroken(const ConnectionError& error) {
    last_error_ = error.cause;
    unresolved_ = error.unresolved;
    open_ = false;
    held_.clear();
    keeper_.OnNewConnection();
    if (!answered_) {
      TryAgain();
      if (std::exchange(troubled_, true)) return;
      return listener_.OnTrouble(absl::StrCat("cannot reach the rendezvous at ", Where(),
                                              " yet: ", last_error_, "; trying for ",
                                              Seconds(options_.connect_timeout)));
    }
    if (error.refused && !durable_) return GiveUp();
    if (error.refused) keeper_.OnConnectionRefused(attempt_began_);
    const bool begins = !outage_began_;
    if (begins) {
      outage_began_ = Clock::now();
      BePatient(options_.reconnect_timeout);
    }
    TryAgain();
    MoveDeadline();
    if (begins) {
      listener_.OnOutOfTouch(
          absl::StrCat("the connection to the rendezvous at ", Where(), " broke: ", last_error_));
    }
  }

  void TryAgain() {
    // Half of the pause is left to chance, so that a thousand nodes do not come back as one.
    std::uniform_real_distribution<double> chance(0.5, 1.0);
    pausing_ = true;
    pause_timer_.expires_after(
        std::chrono::duration_cast<Clock::duration>(pause_ * chance(random_)));
    // Soon enough to be back within a short lease.
    const auto longest = lease_ > Duration::zero()
                             ? std::clamp(std::chrono::duration_cast<milliseconds>(lease_ / 3),
                                          kFirstPause, kLongestPause)
                             : kLongestPause;
    pause_ = std::min(pause_ * 2, longest);
    OnExpiry(pause_timer_, [this] {
      pausing_ = false;
      // After an eviction there is nothing to say until the next Join.
      if (attended_ || !said_.empty()) Connect();
    });
  }

  // How long we go on trying, from now on.
  void BePatient(milliseconds patience) {
    patience_timer_.expires_after(patience);
    OnExpiry(patience_timer_, [this] { GiveUp(); });
  }

  void GiveUp() {
    const bool was_there = answered_;
    LetGo();
    if (was_there) {
      listener_.OnLost(absl::UnavailableError(
          absl::StrCat("the rendezvous at ", Where(), " is gone: ", last_error_)));
      return;
    }
    listener_.OnLost(absl::UnavailableError(absl::StrCat(
        "cannot reach the rendezvous at ", Where(), " within ", Seconds(options_.connect_timeout),
        ": ", last_error_.empty() ? "it does not answer" : last_error_)));
  }

  void Beat() {
    stream_->Send(KeepAlive{keeper_.Beat(Clock::now())});
    ArmWatch();
    beat_timer_.expires_after(keep_alive_);
    OnExpiry(beat_timer_, [this] {
      if (stream_ != nullptr && open_) Beat();
    });
  }

  void MoveDeadline() {
    if (const auto deadline = keeper_.last_deadline()) listener_.OnDeadline(deadline);
    ArmWatch();
  }

  // Looks again when the lease is about to end, or when the connection is to be doubted.
  void ArmWatch() {
    std::optional<TimePoint> due = keeper_.deadline();
    if (due && fenced_for_ == due) due.reset();
    if (const auto doubtful = DoubtfulFrom()) due = std::min(due.value_or(*doubtful), *doubtful);
    watch_timer_.cancel();
    if (!due || left_) return;
    watch_timer_.expires_at(*due);
    OnExpiry(watch_timer_, [this] { Watch(); });
  }

  std::optional<TimePoint> DoubtfulFrom() const {
    if (stream_ == nullptr) return std::nullopt;
    if (answered_ && !open_) return attempt_began_ + kLongestAttempt;
    return keeper_.doubtful_from();
  }

  void Watch() {
    const TimePoint now = Clock::now();
    const std::optional<TimePoint> deadline = keeper_.deadline();
    if (deadline && now >= *deadline && fenced_for_ != deadline) {
      fenced_for_ = deadline;
      listener_.OnFenced(
          absl::StrCat("nothing was heard of the rendezvous at ", Where(), " for ",
                       Seconds(SelfFenceAfter(lease_)),
                       last_error_.empty() ? "" : absl::StrCat(" (", last_error_, ")"),
                       ", and it may give this node's place away"));
    }
    const std::optional<TimePoint> doubtful = DoubtfulFrom();
    if (doubtful && now >= *doubtful) {
      std::exchange(stream_, nullptr)->Abandon();
      beat_timer_.cancel();
      return HandleBroken({.cause = "nothing is answered"});
    }
    ArmWatch();
  }

  std::string Where() const { return ToString(options_.endpoint); }

  // Has `then` called when the timer expires, unless it is cancelled or we let go before. (Cancel
  // alone does not stop a handler that is queued already.)
  template <typename Then>
  void OnExpiry(boost::asio::steady_timer& timer, Then then) {
    timer.async_wait([&timer, due = timer.expiry(), then,
                      alive = std::weak_ptr<void>(alive_)](const boost::system::error_code& error) {
      if (!error && !alive.expired() && timer.expiry() == due) then();
    });
  }

  // Nothing comes of what was begun: this client is done.
  void LetGo() {
    alive_.reset();
    pause_timer_.cancel();
    patience_timer_.cancel();
    beat_timer_.cancel();
    watch_timer_.cancel();
    if (stream_ != nullptr) std::exchange(stream_, nullptr)->Abandon();
  }

  boost::asio::io_context& io_;
  const GrpcClientOptions options_;
  Listener& listener_;

  SessionToken session_;
  std::uint64_t connection_ = 0;  // how many there were
  std::vector<Event> said_;       // since the last Join, that included
  bool answered_ = false;         // the daemon has said something, at one time
  bool attended_ = false;         // it knows our session
  bool over_ = false;             // we were refused
  bool durable_ = false;
  Duration lease_{};
  Duration keep_alive_{};
  LeaseKeeper keeper_;
  std::optional<TimePoint> fenced_for_;  // the deadline that was told
  std::vector<Directive> held_;          // an Assignment and what came after it (LeaseIsShort)

  AttendStream* stream_ = nullptr;  // deletes itself once gRPC is done with it
  bool open_ = false;               // what is said may be sent on it
  TimePoint attempt_began_{};
  TimePoint asked_at_{};  // when the Join or Resume was sent that Welcome answers
  std::string peer_;      // where the daemon was found
  bool unresolved_ = false;
  std::string last_error_;
  bool troubled_ = false;
  std::optional<TimePoint> outage_began_;

  boost::asio::steady_timer pause_timer_;
  bool pausing_ = false;
  milliseconds pause_ = kFirstPause;
  boost::asio::steady_timer patience_timer_;
  boost::asio::steady_timer beat_timer_;
  boost::asio::steady_timer watch_timer_;
  std::minstd_rand random_;

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
