#include "rendezvous/client/log_delivery_stream.h"

#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/wire/log_wire.h"

namespace muster::rendezvous {
namespace {

// gRPC's callbacks run on its threads and post; all else is the loop's. It deletes itself once gRPC
// is done with it.
class LogDeliveryStream final : public grpc::ClientBidiReactor<v1::LogDelivery, v1::LogTaken> {
 public:
  LogDeliveryStream(boost::asio::io_context& io, std::shared_ptr<grpc::Channel> channel,
                    std::uint64_t delivery, LogDelivery::Handlers handlers)
      : io_(io),
        stub_(v1::Rendezvous::NewStub(std::move(channel))),
        stay_(io.get_executor()),
        handlers_(std::move(handlers)) {
    part_.set_delivery(delivery);
    stub_->async()->DeliverLog(&context_, this);
    StartRead(&taken_);
    StartWrite(&part_);
    // Holds the stream open for writes that come from the loop.
    AddHold();
    StartCall();
  }

  void Write(const LogPart& part) {
    part_.Clear();
    ToWire(part, &part_);
    Write();
  }
  void WriteEnd() {
    part_.Clear();
    part_.set_end(true);
    is_last_ = true;
    Write();
  }
  // No handler is called any more.
  void Abandon() {
    handlers_ = {};
    context_.TryCancel();
    Release();
  }

  // Nothing is answered: it is the end.
  void OnReadDone(bool) override {
    boost::asio::post(io_, [this] { Release(); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(io_, [this, ok] {
      // A copy, as the handler may abandon us.
      const auto call = handlers_.on_ready;
      if (ok && !is_last_ && call) call();
    });
  }
  void OnDone(const grpc::Status&) override {
    boost::asio::post(io_, [self = std::unique_ptr<LogDeliveryStream>(this)] {
      if (const auto call = self->handlers_.on_over) call();
    });
  }

 private:
  void Write() {
    if (!released_) StartWrite(&part_);
  }
  // Lets gRPC end the call: nothing is started on it any more.
  void Release() {
    if (std::exchange(released_, true)) return;
    RemoveHold();
  }

  boost::asio::io_context& io_;
  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  // gRPC's threads post until OnDone: the loop must not run dry before.
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  LogDelivery::Handlers handlers_;

  grpc::ClientContext context_;
  v1::LogDelivery part_;  // gRPC's between StartWrite and OnWriteDone
  v1::LogTaken taken_;    // never comes
  bool is_last_ = false;
  bool released_ = false;
};

class GrpcLogDelivery final : public LogDelivery {
 public:
  GrpcLogDelivery(boost::asio::io_context& io, std::shared_ptr<grpc::Channel> channel,
                  std::uint64_t delivery, Handlers handlers)
      : handlers_(std::move(handlers)),
        stream_(new LogDeliveryStream(io, std::move(channel), delivery,
                                      {.on_ready = handlers_.on_ready, .on_over = [this] {
                                         stream_ = nullptr;
                                         // A copy, as it may destroy this.
                                         const auto call = handlers_.on_over;
                                         call();
                                       }})) {}
  ~GrpcLogDelivery() override {
    if (stream_ != nullptr) stream_->Abandon();
  }

  void Send(LogPart part) override {
    if (stream_ != nullptr) stream_->Write(part);
  }
  void Finish() override {
    if (stream_ != nullptr) stream_->WriteEnd();
  }

 private:
  const Handlers handlers_;
  LogDeliveryStream* stream_;
};

}  // namespace

std::unique_ptr<LogDelivery> DeliverOverGrpc(boost::asio::io_context& io,
                                             std::shared_ptr<grpc::Channel> channel,
                                             std::uint64_t delivery,
                                             LogDelivery::Handlers handlers) {
  return std::make_unique<GrpcLogDelivery>(io, std::move(channel), delivery, std::move(handlers));
}

}  // namespace muster::rendezvous
