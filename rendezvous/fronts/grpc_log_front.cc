#include "rendezvous/fronts/grpc_log_front.h"

#include <chrono>
#include <optional>
#include <utility>

#include <grpcpp/support/byte_buffer.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "base/async/timer.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/fronts/loop_stream.h"
#include "rendezvous/fronts/subscriptions.h"
#include "rendezvous/wire/worker_wire.h"

namespace muster::rendezvous {

// One call, what both kinds have in common.
template <typename In>
class GrpcLogFront::Call : public LoopStream<In>, public Stream {
 public:
  Call(GrpcLogFront& front, Rpc rpc, Counted& counted, const grpc::CallbackServerContext& context,
       CallGate::Pass pass)
      : LoopStream<In>(front.io_, front.router_, rpc, context, std::move(pass)),
        front_(front),
        counted_(counted),
        silence_(front.io_) {}

  ~Call() override {
    front_.streams_.erase(this);
    if (!is_counted_) return;
    --counted_.calls;
    if (--counted_.of_tenant[this->pass_.tenant()] == 0) {
      counted_.of_tenant.erase(this->pass_.tenant());
    }
  }

  void Lose(const absl::Status& status) final {
    if (this->ended()) return;
    HandleLost();
    this->End(status);
  }

 protected:
  // The call ends for a reason that nobody here knows of yet.
  virtual void HandleLost() = 0;

  // Something was said.
  void Hears() { silence_.Cancel(); }

  grpc::ByteBuffer out_;  // gRPC's between StartWrite and HandleWritten

 private:
  void HandleOpen() final {
    front_.streams_.insert(this);
    if (const absl::Status counted = Count(); !counted.ok()) return this->End(counted);
    if (front_.hold_) {
      auto hold = front_.hold_(this->caller_.peer);
      if (!hold.ok()) return this->End(hold.status());
      hold_ = *std::move(hold);
    }
    silence_.After(std::chrono::seconds(limits::kLogAnswerSeconds.most),
                   [this] { Lose(absl::DeadlineExceededError("the call has no message")); });
    this->ReadNext();
  }
  void HandleGone() final { Lose(absl::CancelledError("it was cancelled")); }
  void HandleEnd(const absl::Status&) final {
    silence_.Cancel();
    hold_.reset();
    this->AwaitTaken(out_.Length());
  }

  absl::Status Count() {
    std::size_t& of_tenant = counted_.of_tenant[this->pass_.tenant()];
    const bool tenant_is_full =
        !this->pass_.tenant().empty() && of_tenant >= counted_.most_of_tenant;
    ++of_tenant;
    ++counted_.calls;
    is_counted_ = true;
    if (counted_.calls <= counted_.most && !tenant_is_full) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(tenant_is_full ? counted_.most_of_tenant : counted_.most,
                     this->rpc_ == Rpc::kReadLog ? " readers of logs are there"
                                                 : " deliveries of logs are under way",
                     ", which is the limit"));
  }

  GrpcLogFront& front_;
  Counted& counted_;
  std::shared_ptr<void> hold_;
  bool is_counted_ = false;
  base::Timer silence_;  // until its first message
};

// A tool's.
class GrpcLogFront::Reading final : public Call<v1::LogRequest> {
 public:
  using Call::Call;

 private:
  void HandleRead(bool ok) override {
    Hears();
    if (!ok)
      return End(absl::InvalidArgumentError("the call has no message, or an incomplete one"));
    if (!MayGoOn()) return End(NoLongerAllowed());
    LogRequest request = FromWire(in_);
    // No job has a longer name; one that cannot be shown as it is may well be a job's.
    if (request.run_id.size() > kMaxNameLength) request.run_id.resize(kMaxNameLength);
    id_ = daemon_loop().logs().OpenReader(std::move(request),
                                          {.on_part = [this](const LogPart& part) { Give(part); },
                                           .on_end = [this](const absl::Status& s) { End(s); }});
  }

  void Give(const LogPart& part) {
    if (!MayGoOn()) {
      // Once control is back in the loop: this is called by who gives.
      return boost::asio::post(io_, [this] { Lose(NoLongerAllowed()); });
    }
    v1::LogPart wire;
    ToWire(part, &wire);
    ToBytes(wire, &out_);
    StartWrite(&out_);
  }

  void HandleWritten(bool ok) override {
    if (!ok) return Lose(absl::CancelledError("the reader is gone"));
    daemon_loop().logs().Took(*id_);
  }

  void HandleLost() override {
    if (id_) daemon_loop().logs().CloseReader(*id_);
  }

  std::optional<LogReaderId> id_;
};

// An agent's.
class GrpcLogFront::Bringing final : public Call<v1::LogDelivery> {
 public:
  using Call::Call;

 private:
  static absl::Status Broken() {
    return absl::UnavailableError("the connection to its agent broke while its log was read");
  }

  void HandleRead(bool said) override {
    if (!id_) return said ? HandleFirst() : End(absl::InvalidArgumentError("no delivery is named"));
    if (!said) return Lose(Broken());
    if (in_.part_case() != v1::LogDelivery::kEnd) {
      return daemon_loop().logs().Brought(*id_, FromWire(std::move(in_)));
    }
    daemon_loop().logs().Ended(*std::exchange(id_, std::nullopt), absl::OkStatus());
    End(absl::OkStatus());
  }

  void HandleFirst() {
    Hears();
    if (!MayGoOn()) return End(NoLongerAllowed());
    id_ = in_.delivery();
    const bool wanted = daemon_loop().logs().OpenDelivery(
        *id_, {.read = [this] { ReadNext(); },
               .end = [this] { End(absl::AbortedError("its reader is gone")); }});
    if (wanted) return;
    id_.reset();
    End(absl::NotFoundError("its reader is gone"));
  }

  void HandleLost() override {
    if (id_) daemon_loop().logs().Ended(*std::exchange(id_, std::nullopt), Broken());
  }

  std::optional<LogDeliveryId> id_;
};

GrpcLogFront::GrpcLogFront(boost::asio::io_context& io, RpcRouter& router, Hold hold)
    : io_(io),
      router_(router),
      hold_(std::move(hold)),
      readings_{.most = limits::kLogReaders.most,
                .most_of_tenant = limits::kLogReadersOfTenant.most},
      deliveries_{.most = limits::kLogDeliveries.most,
                  .most_of_tenant = limits::kLogDeliveriesOfTenant.most} {
  router.ServeStream(
      Rpc::kReadLog, [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
        return Reading::Open<Reading>(*this, Rpc::kReadLog, readings_, context, std::move(pass));
      });
  router.ServeStream(Rpc::kDeliverLog, [this](const grpc::CallbackServerContext& context,
                                              CallGate::Pass pass) {
    return Bringing::Open<Bringing>(*this, Rpc::kDeliverLog, deliveries_, context, std::move(pass));
  });
}

void GrpcLogFront::EndStreams() {
  // Each leaves the set when gRPC is done with it, on the loop.
  for (Stream* const stream : streams_) {
    stream->Lose(absl::UnavailableError("the daemon stopped"));
  }
}

}  // namespace muster::rendezvous
