// A call of both sides' streams that a front answers on the loop.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/lifetime.h"
#include "rendezvous/fronts/flow_control.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/net/call_gate.h"

namespace muster::rendezvous {

// gRPC's callbacks run on gRPC's threads and post; the Handle functions, and everything they touch,
// are the loop's, and none but HandleEnd is called once the call has ended. It deletes itself after
// OnDone, which gRPC calls last: `io` and the router must outlive the grpc::Server.
template <typename In>
class LoopStream : public grpc::ServerGenericBidiReactor {
 public:
  // On one of gRPC's threads, in the place of `new Stream(arguments...)`.
  template <typename Stream, typename... Arguments>
  static grpc::ServerGenericBidiReactor* Open(Arguments&&... arguments) {
    auto* const stream = new Stream(std::forward<Arguments>(arguments)...);  // deleted by OnDone
    boost::asio::post(stream->io_, [stream] { static_cast<LoopStream*>(stream)->Admit(); });
    return stream;
  }

  ~LoopStream() override {
    Taken();
    if (cancelled_ && lingers_) pass_.Linger();
  }

  // Ends the call, whatever is on its way, unless it has ended; with a last
  // message, if there is one, which then is gRPC's until this is gone.
  void End(const absl::Status& status, grpc::ByteBuffer* last = nullptr) {
    if (std::exchange(ended_, true)) return;
    HandleEnd(status);
    if (last == nullptr) return Finish(ToGrpcStatus(status));
    StartWriteAndFinish(last, grpc::WriteOptions(), ToGrpcStatus(status));
  }

  void OnReadDone(bool ok) final {
    const bool said = ok && ParseBytes(&in_bytes_, &in_).ok();
    boost::asio::post(io_, [this, said] {
      if (!ended_) HandleRead(said);
    });
  }
  void OnWriteDone(bool ok) final {
    boost::asio::post(io_, [this, ok] {
      if (!ended_) HandleWritten(ok);
    });
  }
  void OnCancel() final {
    cancelled_ = true;
    boost::asio::post(io_, [this] {
      if (!ended_) HandleGone();
    });
  }
  void OnDone() final {
    boost::asio::post(io_, [self = std::unique_ptr<LoopStream>(this)] {});
  }

 protected:
  LoopStream(boost::asio::io_context& io, RpcRouter& router, Rpc rpc,
             const grpc::CallbackServerContext& context, CallGate::Pass pass)
      : io_(io),
        router_(router),
        rpc_(rpc),
        context_(context),
        pass_(std::move(pass)),
        caller_(CallerOf(context)) {}

  // It is admitted.
  virtual void HandleOpen() = 0;
  // What was asked for by ReadNext is in_; false: the other side has ended, or
  // has sent something else.
  virtual void HandleRead(bool ok) = 0;
  // What was given to gRPC by StartWrite has been taken; false: the call breaks.
  virtual void HandleWritten(bool /*ok*/) {}
  // The other side has cancelled the call, or its connection is gone.
  virtual void HandleGone() { End(absl::CancelledError("the caller has gone")); }
  // The call ends, which may be before it was admitted: lets go of what it holds.
  virtual void HandleEnd(const absl::Status& /*status*/) {}

  void ReadNext() { StartRead(&in_bytes_); }

  bool ended() const { return ended_; }
  // Its caller still has the right to it.
  bool MayGoOn() const { return router_.MayGoOn(rpc_, context_); }
  DaemonLoop& daemon_loop() const { return *admission_.daemon_loop; }

  // So many bytes are on their way; counted until they are taken, or the call is gone.
  void AwaitTaken(std::size_t bytes) {
    if (!untaken_) untaken_ = router_.untaken().Add(caller_.peer, bytes);
  }
  void Taken() {
    if (untaken_) router_.untaken().Taken(*std::exchange(untaken_, std::nullopt));
  }

  boost::asio::io_context& io_;
  RpcRouter& router_;
  const Rpc rpc_;
  const grpc::CallbackServerContext& context_;  // until the end
  CallGate::Pass pass_;
  const Caller caller_;
  Admission admission_;
  bool lingers_ = true;  // counts for a while longer if it was cancelled (CallGate)
  In in_;                // gRPC's between ReadNext and HandleRead
  const base::Lifetime lifetime_;

 private:
  void Admit() {
    absl::StatusOr<Admission> admission = router_.Admit(rpc_, context_, caller_, pass_);
    if (!admission.ok()) return End(admission.status());
    admission_ = *std::move(admission);
    HandleOpen();
  }

  grpc::ByteBuffer in_bytes_;
  bool ended_ = false;
  bool cancelled_ = false;  // gRPC's; OnDone comes after OnCancel
  std::optional<UnreadResponses::Id> untaken_;
};

}  // namespace muster::rendezvous
