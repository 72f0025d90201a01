#include "rendezvous/fronts/grpc_log_front.h"

#include <chrono>
#include <optional>
#include <utility>

#include <grpcpp/support/byte_buffer.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "base/lifetime.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/names.h"
#include "rendezvous/fronts/log_exchange.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/message_bytes.h"
#include "rendezvous/wire/log_wire.h"
#include "rendezvous/wire/printable.h"

namespace muster::rendezvous {
namespace {

// Token files are looked at no more often, however much is read.
constexpr std::chrono::seconds kLookPause(1);

}  // namespace

// One call, what both kinds have in common. gRPC's callbacks run on gRPC's threads and post; the
// Handle methods and everything they touch are the loop's. It deletes itself after OnDone, which
// gRPC calls last.
class GrpcLogFront::Stream : public grpc::ServerGenericBidiReactor {
 public:
  Stream(GrpcLogFront& front, Rpc rpc, Counted& counted, const grpc::CallbackServerContext& context,
         CallGate::Pass pass)
      : front_(front),
        rpc_(rpc),
        counted_(counted),
        context_(context),
        pass_(std::move(pass)),
        caller_(CallerOf(context)),
        silence_(front.io_) {
    boost::asio::post(front_.io_, [this] { HandleOpen(); });
  }

  ~Stream() override {
    front_.streams_.erase(this);
    if (untaken_) front_.entrance_.untaken().Taken(*untaken_);
    if (is_counted_) {
      --counted_.calls;
      if (--counted_.of_tenant[pass_.tenant()] == 0) counted_.of_tenant.erase(pass_.tenant());
    }
    if (cancelled_) pass_.Linger();
  }

  void OnCancel() override {
    cancelled_ = true;
    boost::asio::post(front_.io_, [this] { HandleGone(absl::CancelledError("it was cancelled")); });
  }
  void OnDone() override {
    boost::asio::post(front_.io_, [self = std::unique_ptr<Stream>(this)] {});
  }

  // Ends the call, if it has not ended; whoever is at its other end here is told.
  void HandleGone(const absl::Status& status) {
    if (ended_) return;
    HandleLost();
    End(status);
  }

 protected:
  // The first message is here; it may also be that there is none, and the call has ended.
  virtual void HandleFirst() = 0;
  // The call ends for a reason that nobody here knows of yet.
  virtual void HandleLost() = 0;

  Driver& driver() { return *admission_.driver; }

  // Its token still counts.
  bool MayGoOn() {
    front_.LookAtTokens();
    return front_.entrance_.MayGoOn(rpc_, context_);
  }

  void End(const absl::Status& status) {
    if (std::exchange(ended_, true)) return;
    silence_.cancel();
    hold_.reset();
    untaken_ = front_.entrance_.untaken().Add(caller_.peer, out_.Length());
    Finish(ToGrpcStatus(status));
  }

  // Something was said.
  void Hears() {
    heard_ = true;
    silence_.cancel();
  }

  GrpcLogFront& front_;
  grpc::ByteBuffer in_;   // gRPC's between StartRead and OnReadDone
  grpc::ByteBuffer out_;  // gRPC's between StartWrite and OnWriteDone
  bool ended_ = false;    // Finish was called

 private:
  void HandleOpen() {
    front_.streams_.insert(this);
    absl::StatusOr<Admission> admission = front_.entrance_.Admit(rpc_, context_, caller_, pass_);
    if (!admission.ok()) return End(admission.status());
    admission_ = *std::move(admission);
    if (const absl::Status counted = Count(); !counted.ok()) return End(counted);
    if (front_.hold_) {
      auto hold = front_.hold_(caller_.peer);
      if (!hold.ok()) return End(hold.status());
      hold_ = *std::move(hold);
    }
    silence_.expires_after(std::chrono::seconds(limits::kLogAnswerSeconds.most));
    silence_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
      // It may be over and on its way when the message is, which then comes first.
      if (!error && !heard_) HandleGone(absl::DeadlineExceededError("the call has no message"));
    }));
    StartRead(&in_);
  }

  absl::Status Count() {
    std::size_t& of_tenant = counted_.of_tenant[pass_.tenant()];
    const bool tenant_is_full = !pass_.tenant().empty() && of_tenant >= counted_.most_of_tenant;
    ++of_tenant;
    ++counted_.calls;
    is_counted_ = true;
    if (counted_.calls <= counted_.most && !tenant_is_full) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        tenant_is_full ? counted_.most_of_tenant : counted_.most,
        rpc_ == Rpc::kReadLog ? " readers of logs are there" : " deliveries of logs are under way",
        ", which is the limit"));
  }

  const Rpc rpc_;
  Counted& counted_;
  const grpc::CallbackServerContext& context_;  // until Finish
  CallGate::Pass pass_;
  const Caller caller_;
  Admission admission_;
  std::shared_ptr<void> hold_;
  bool is_counted_ = false;
  bool heard_ = false;
  bool cancelled_ = false;                     // gRPC's; OnDone comes after OnCancel
  boost::asio::steady_timer silence_;          // until its first message
  std::optional<UntakenAnswers::Id> untaken_;  // once it ends
  const base::Lifetime lifetime_;
};

// A tool's.
class GrpcLogFront::Reading final : public Stream {
 public:
  using Stream::Stream;

  void OnReadDone(bool ok) override {
    said_ =
        ok ? ParseBytes(&in_, &request_) : absl::InvalidArgumentError("the call has no message");
    boost::asio::post(front_.io_, [this] { HandleFirst(); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(front_.io_, [this, ok] { HandleWritten(ok); });
  }

 private:
  void HandleFirst() override {
    if (ended_) return;
    Hears();
    if (!said_.ok()) return End(said_);
    LogRequest request = FromWire(request_);
    request.run_id = OneLine(request.run_id, kMaxNameLength);
    id_ = driver().logs().OpenReader(std::move(request),
                                     {.on_part = [this](const LogPart& part) { Give(part); },
                                      .on_end = [this](const absl::Status& s) { End(s); }});
  }

  void Give(const LogPart& part) {
    if (!MayGoOn()) {
      // Once control is back in the loop: this is called by who gives.
      return boost::asio::post(front_.io_, [this] {
        HandleGone(absl::PermissionDeniedError("this client has a token that no longer counts"));
      });
    }
    v1::LogPart wire;
    ToWire(part, &wire);
    ToBytes(wire, &out_);
    StartWrite(&out_);
  }

  void HandleWritten(bool ok) {
    if (ended_) return;
    if (!ok) return HandleGone(absl::CancelledError("the reader is gone"));
    driver().logs().Took(*id_);
  }

  void HandleLost() override {
    if (id_) driver().logs().CloseReader(*id_);
  }

  v1::LogRequest request_;  // gRPC's thread parses it
  absl::Status said_;
  std::optional<LogReaderId> id_;
};

// An agent's.
class GrpcLogFront::Bringing final : public Stream {
 public:
  using Stream::Stream;

  void OnReadDone(bool ok) override {
    const bool said = ok && ParseBytes(&in_, &part_).ok();
    boost::asio::post(front_.io_, [this, said] { HandleRead(said); });
  }

 private:
  static absl::Status Broken() {
    return absl::UnavailableError("the connection to its agent broke while its log was read");
  }

  void HandleRead(bool said) {
    if (ended_) return;
    if (!id_) return said ? HandleFirst() : End(absl::InvalidArgumentError("no delivery is named"));
    if (!said) return HandleGone(Broken());
    if (part_.part_case() != v1::LogDelivery::kEnd) {
      return driver().logs().Brought(*id_, FromWire(std::move(part_)));
    }
    driver().logs().Ended(*std::exchange(id_, std::nullopt), absl::OkStatus());
    End(absl::OkStatus());
  }

  void HandleFirst() override {
    Hears();
    id_ = part_.delivery();
    const bool wanted = driver().logs().OpenDelivery(
        *id_, {.read = [this] { StartRead(&in_); },
               .end = [this] { End(absl::AbortedError("nobody reads it any more")); }});
    if (wanted) return;
    id_.reset();
    End(absl::NotFoundError("nobody reads it any more"));
  }

  void HandleLost() override {
    if (id_) driver().logs().Ended(*std::exchange(id_, std::nullopt), Broken());
  }

  v1::LogDelivery part_;  // gRPC's thread parses it
  std::optional<LogDeliveryId> id_;
};

GrpcLogFront::GrpcLogFront(boost::asio::io_context& io, CallEntrance& entrance, Hold hold,
                           std::function<void()> look_at_tokens)
    : io_(io),
      entrance_(entrance),
      hold_(std::move(hold)),
      look_at_tokens_(std::move(look_at_tokens)),
      readings_{.most = limits::kLogReaders.most,
                .most_of_tenant = limits::kLogReadersOfTenant.most},
      deliveries_{.most = limits::kLogDeliveries.most,
                  .most_of_tenant = limits::kLogDeliveriesOfTenant.most} {
  entrance.ServeStream(
      Rpc::kReadLog, [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
        return new Reading(*this, Rpc::kReadLog, readings_, context, std::move(pass));
      });
  entrance.ServeStream(
      Rpc::kDeliverLog, [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
        return new Bringing(*this, Rpc::kDeliverLog, deliveries_, context, std::move(pass));
      });
}

GrpcLogFront::~GrpcLogFront() = default;

void GrpcLogFront::LookAtTokens() {
  const auto now = std::chrono::steady_clock::now();
  if (!look_at_tokens_ || now < look_after_) return;
  look_after_ = now + kLookPause;
  look_at_tokens_();
}

void GrpcLogFront::EndStreams() {
  // Each leaves the set when gRPC is done with it, on the loop.
  for (Stream* const stream : streams_) {
    stream->HandleGone(absl::UnavailableError("the daemon ended"));
  }
}

}  // namespace muster::rendezvous
