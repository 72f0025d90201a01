#include "rendezvous/client/log_reader.h"

#include <string>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/client/grpc_error.h"
#include "rendezvous/wire/log_wire.h"

namespace muster::rendezvous {
namespace {

// How a Muster daemon answers a call that it does not know (CallEntrance).
bool IsOldDaemon(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
         absl::StartsWith(status.error_message(), "there is no call");
}

absl::Status ExplainEnd(const grpc::Status& status, const DaemonOptions& daemon) {
  if (status.ok()) return absl::OkStatus();
  if (IsOldDaemon(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToString(daemon.endpoint),
                     ": the daemon there is of a version that knows nothing of logs; update it"));
  }
  return ExplainFailure(status, daemon);
}

}  // namespace

// gRPC's callbacks run on its threads and post; all else is the loop's.
class LogReader::Stream final : public grpc::ClientReadReactor<v1::LogPart> {
 public:
  Stream(boost::asio::io_context& io, const DaemonOptions& daemon, const LogRequest& request,
         Handlers handlers, LogReader* owner)
      : io_(io),
        daemon_(daemon),
        stub_(v1::Rendezvous::NewStub(OpenChannel(
            ChannelTarget(WhereItLeads(daemon.endpoint, daemon.patience)), daemon.credentials))),
        stay_(io.get_executor()),
        handlers_(std::move(handlers)),
        owner_(owner) {
    ToWire(request, &request_);
    stub_->async()->ReadLog(&context_, &request_, this);
    // Holds the stream open for reads that come from the loop.
    AddHold();
    StartRead(&part_);
    StartCall();
  }

  // No handler is called any more.
  void Abandon() {
    owner_ = nullptr;
    context_.TryCancel();
    Release();
  }

  void Pause() { paused_ = true; }
  void Resume() {
    paused_ = false;
    ReadNext();
  }

  void OnReadDone(bool ok) override {
    boost::asio::post(io_, [this, ok] { HandleRead(ok); });
  }
  void OnDone(const grpc::Status& status) override {
    boost::asio::post(io_, [self = std::unique_ptr<Stream>(this), status] {
      if (self->owner_ == nullptr) return;
      self->owner_->stream_ = nullptr;
      // The owner may destroy itself, and this with it.
      const auto on_end = std::move(self->handlers_.on_end);
      on_end(ExplainEnd(status, self->daemon_));
    });
  }

 private:
  void HandleRead(bool ok) {
    reading_ = false;
    if (!ok) return Release();
    if (owner_ == nullptr) return;
    handlers_.on_part(FromWire(std::move(part_)));
    ReadNext();
  }

  void ReadNext() {
    if (paused_ || released_ || std::exchange(reading_, true)) return;
    part_.Clear();
    StartRead(&part_);
  }

  // Lets gRPC end the call: nothing is started on it any more.
  void Release() {
    if (std::exchange(released_, true)) return;
    RemoveHold();
  }

  boost::asio::io_context& io_;
  const DaemonOptions daemon_;
  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  // gRPC's threads post until OnDone: the loop must not run dry before.
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  Handlers handlers_;
  LogReader* owner_;  // null: it does not want to hear any more

  grpc::ClientContext context_;
  v1::LogRequest request_;
  v1::LogPart part_;     // gRPC's between StartRead and OnReadDone
  bool reading_ = true;  // one was asked for
  bool paused_ = false;
  bool released_ = false;
};

LogReader::LogReader(boost::asio::io_context& io, const DaemonOptions& daemon,
                     const LogRequest& request, Handlers handlers)
    : stream_(new Stream(io, daemon, request, std::move(handlers), this)) {}

LogReader::~LogReader() {
  if (stream_ != nullptr) stream_->Abandon();
}

void LogReader::Pause() {
  if (stream_ != nullptr) stream_->Pause();
}

void LogReader::Resume() {
  if (stream_ != nullptr) stream_->Resume();
}

}  // namespace muster::rendezvous
