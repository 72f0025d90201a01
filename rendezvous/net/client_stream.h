// A gRPC call of this client whose messages come to the loop.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/status.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace muster::rendezvous {

// Sends any number of Out and reads any number of In; with Out void, the one request is the stub's.
//
//   stream_ = ClientStream<Out, In>::Make(io);
//   stub->async()->Method(&stream_->context(), stream_.get());
//   stream_->Start({.on_read = ..., .on_done = ...});
//
// The call belongs to two: its Owner, who may let go of it at any moment, also from within a
// handler or after on_done, and no handler is called from then on; and gRPC, until OnDone. It is
// cut off when the owner is gone first, and deleted when both are. gRPC's callbacks run on its
// threads and post; all else is the loop's. `io` must outlive the call.
template <typename Out, typename In>
class ClientStream final
    : public std::conditional_t<std::is_void_v<Out>, grpc::ClientReadReactor<In>,
                                grpc::ClientBidiReactor<Out, In>> {
 public:
  using Owner = std::shared_ptr<ClientStream>;
  using Message = std::conditional_t<std::is_void_v<Out>, std::monostate, Out>;

  // Each may be empty.
  struct Handlers {
    // The other end has let the call in; may come after the first message.
    std::function<void()> on_accepted{};
    // The next message is read when this returns, unless the call is paused.
    std::function<void(In&)> on_read{};
    // The first message of those that were sent is on its way; false: the call breaks.
    std::function<void(bool ok)> on_written{};
    // The last call.
    std::function<void(const grpc::Status&)> on_done{};
  };

  // Must be started.
  static Owner Make(boost::asio::io_context& io) {
    std::shared_ptr<ClientStream> stream(new ClientStream(io));
    stream->grpcs_ = stream;
    return {stream.get(), [stream](ClientStream*) { stream->Abandon(); }};
  }

  grpc::ClientContext& context() { return context_; }

  void Start(Handlers handlers) {
    handlers_ = std::make_shared<const Handlers>(std::move(handlers));
    ReadNext();
    // Holds the call open for what comes from the loop.
    this->AddHold();
    this->StartCall();
  }

  // Nothing is read until Resume; what has been asked for may still come.
  void Pause() { paused_ = true; }
  void Resume() {
    paused_ = false;
    ReadNext();
  }

  // After what was sent before. Nothing once the sending has ended.
  void Send(Message message) {
    if (sending_ != Sending::kOpen) return;
    unsent_.push_back(std::move(message));
    if (!writing_) WriteNext();
  }
  // Ends our side once everything has been written; the other end hears of it.
  void EndSending() {
    if (sending_ == Sending::kOpen) sending_ = Sending::kEnding;
    if (!writing_) WriteNext();
  }

  // Nothing more is sent or read: the call is over when the other end ends it.
  void End() {
    if (!std::exchange(ended_, true)) this->RemoveHold();
  }
  // The call is over at once; on_done says CANCELLED, unless it was before.
  void Cancel() {
    context_.TryCancel();
    End();
  }

  void OnReadInitialMetadataDone(bool ok) override {
    if (!ok) return;
    boost::asio::post(io_, [this] {
      if (const auto handlers = handlers_; handlers && handlers->on_accepted) {
        handlers->on_accepted();
      }
    });
  }
  void OnReadDone(bool ok) override {
    boost::asio::post(io_, [this, ok] { HandleRead(ok); });
  }
  void OnWriteDone(bool ok) {  // of streams of both sides alone
    boost::asio::post(io_, [this, ok] { HandleWritten(ok); });
  }
  void OnDone(const grpc::Status& status) override {
    boost::asio::post(io_, [self = std::move(grpcs_), status] {
      self->stay_.reset();
      const auto handlers = std::exchange(self->handlers_, nullptr);
      if (handlers && handlers->on_done) handlers->on_done(status);
    });
  }

 private:
  enum class Sending {
    kOpen,
    kEnding,  // once all that is unsent has been written
    kEnded,   // gRPC was told so
  };

  explicit ClientStream(boost::asio::io_context& io) : io_(io), stay_(io.get_executor()) {}

  void Abandon() {
    // It is over.
    if (!std::exchange(handlers_, nullptr)) return;
    Cancel();
  }

  void ReadNext() {
    if (!paused_ && !ended_ && !std::exchange(reading_, true)) this->StartRead(&in_);
  }
  void HandleRead(bool ok) {
    reading_ = false;
    // The other end has ended the call; without our hold it is over.
    if (!ok) return End();
    if (const auto handlers = handlers_; handlers && handlers->on_read) handlers->on_read(in_);
    ReadNext();
  }

  void WriteNext() {
    if (ended_) return;
    if (!unsent_.empty()) {
      writing_ = true;
      this->StartWrite(&unsent_.front());
    } else if (sending_ == Sending::kEnding) {
      sending_ = Sending::kEnded;
      this->StartWritesDone();
    }
  }
  void HandleWritten(bool ok) {
    writing_ = false;
    unsent_.pop_front();
    if (ok) WriteNext();
    if (const auto handlers = handlers_; handlers && handlers->on_written) {
      handlers->on_written(ok);
    }
  }

  boost::asio::io_context& io_;
  std::shared_ptr<ClientStream> grpcs_;  // gRPC's share, until OnDone
  // gRPC's threads post until OnDone: the loop must not run dry before.
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> stay_;
  // Those of a call that is under way stay when the owner lets go. Null from then on, and at the
  // end.
  std::shared_ptr<const Handlers> handlers_;

  grpc::ClientContext context_;
  In in_;  // gRPC's between StartRead and OnReadDone
  std::deque<Message> unsent_;
  Sending sending_ = Sending::kOpen;
  bool reading_ = false;
  bool paused_ = false;
  bool writing_ = false;  // unsent_.front() is gRPC's
  bool ended_ = false;    // nothing is started on it any more
};

}  // namespace muster::rendezvous
