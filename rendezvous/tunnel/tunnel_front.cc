#include "rendezvous/tunnel/tunnel_front.h"

#include <sys/resource.h>

#include <string_view>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "base/lifetime.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/names.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/message_bytes.h"
#include "rendezvous/tunnel/byte_stream.h"
#include "rendezvous/tunnel/relay.h"
#include "rendezvous/wire/printable.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// Descriptors that are left for files, workers and what gRPC opens itself.
constexpr rlim_t kReserve = 64;

std::string NameOf(const TunnelRound& round) {
  return absl::StrCat("round ", round.round.number, " of job '",
                      OneLine(round.run_id, kMaxNameLength), "'");
}

}  // namespace

// One worker's connection. gRPC's callbacks run on gRPC's threads and post; the Handle methods and
// everything they touch are the loop's. It deletes itself after OnDone, which gRPC calls last.
class TunnelFront::Stream final : public grpc::ServerGenericBidiReactor, private ByteStream {
 public:
  Stream(TunnelFront& front, const grpc::CallbackServerContext& context, CallGate::Pass pass)
      : front_(front), context_(context), pass_(std::move(pass)), caller_(CallerOf(context)) {
    boost::asio::post(front_.io_, [this] { HandleOpen(); });
  }

  ~Stream() override {
    front_.streams_.erase(this);
    if (cancelled_ && !relay_) pass_.Linger();
  }

  void OnReadDone(bool ok) override {
    const bool said = ok && ParseBytes(&in_bytes_, &in_).ok();
    boost::asio::post(front_.io_, [this, said] { HandleRead(said); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(front_.io_, [this, ok] { HandleWritten(ok); });
  }
  void OnCancel() override {
    cancelled_ = true;
    boost::asio::post(front_.io_, [this] { End(absl::CancelledError("the caller has gone")); });
  }
  void OnDone() override {
    boost::asio::post(front_.io_, [self = std::unique_ptr<Stream>(this)] {});
  }

  // Resets the connection to the store, if there is one, and ends the call.
  void End(const absl::Status& status) {
    if (ended_) return;
    ended_ = true;
    store_.reset();
    if (relay_) relay_->OnBroken();
    hold_.reset();
    grpc::ServerGenericBidiReactor::Finish(ToGrpcStatus(status));
  }

 private:
  void HandleOpen() {
    front_.streams_.insert(this);
    absl::StatusOr<Admission> admission =
        front_.entrance_.Admit(Rpc::kTunnelCarry, context_, caller_, pass_);
    if (!admission.ok()) return End(admission.status());
    place_ = std::move(admission->place);
    hold_ = front_.gate_.hold(context_);
    StartRead(&in_bytes_);
  }

  void HandleRead(bool ok) {
    if (ended_) return;
    if (!ok) return End(absl::CancelledError("the caller has gone"));
    if (!relay_ && !store_) return Connect();
    if (!relay_) return End(absl::InvalidArgumentError("the caller does not wait for an answer"));
    if (in_.end()) return relay_->OnEnd();
    relay_->OnBytes(std::move(*in_.mutable_data()));
  }

  void HandleWritten(bool ok) {
    if (ended_) return;
    if (!ok) return End(absl::CancelledError("the caller has gone"));
    relay_->OnWritten();
  }

  void Connect() {
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
    place_.reset();
    store_.emplace(*std::move(store));
    store_->async_connect(front_.store_,
                          lifetime_.Guard([this](const boost::system::error_code& error) {
                            if (!ended_) OnConnected(error);
                          }));
  }

  void OnConnected(const boost::system::error_code& error) {
    if (error) {
      return End(
          absl::UnavailableError(absl::StrCat("connect to the workers' store: ", error.message())));
    }
    relay_.emplace(*std::exchange(store_, std::nullopt), static_cast<ByteStream&>(*this),
                   front_.buffer_);
    StartSendInitialMetadata();
    relay_->Start();
  }

  // ByteStream.
  void Read() override { StartRead(&in_bytes_); }
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
  const grpc::CallbackServerContext& context_;
  CallGate::Pass pass_;
  const Caller caller_;
  bool cancelled_ = false;       // gRPC's; OnDone comes after OnCancel
  std::shared_ptr<void> place_;  // until the round is known to be the right one
  grpc::ByteBuffer in_bytes_;    // gRPC's between StartRead and OnReadDone, and so is what is said
  tunnel::v1::Chunk in_;
  grpc::ByteBuffer out_bytes_;  // gRPC's between StartWrite and OnWriteDone
  bool ended_ = false;          // Finish was called
  std::shared_ptr<void> hold_;
  std::optional<tcp::socket> store_;  // while it connects
  std::optional<Relay> relay_;
  base::Lifetime lifetime_;
};

TunnelFront::TunnelFront(boost::asio::io_context& io, CallEntrance& entrance, Gate gate)
    : io_(io),
      entrance_(entrance),
      gate_(std::move(gate)),
      buffer_(limits::kTunnelChunkBytes.most) {
  entrance.ServeStream(Rpc::kTunnelCarry,
                       [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
                         return new Stream(*this, context, std::move(pass));
                       });
}

TunnelFront::~TunnelFront() = default;

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

}  // namespace muster::rendezvous
