#include "rendezvous/client/attend_stream.h"

#include <utility>

#include <boost/asio/post.hpp>

#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {

AttendStream::AttendStream(boost::asio::io_context& io, std::unique_ptr<v1::Rendezvous::Stub> stub,
                           Handlers handlers)
    : io_(io), stub_(std::move(stub)), stay_(io.get_executor()), handlers_(std::move(handlers)) {
  stub_->async()->Attend(&context_, this);
  StartRead(&directive_);
  // Holds the stream open for writes that come from the loop.
  AddHold();
  StartCall();
}

void AttendStream::Send(const Event& event) {
  if (writes_ != Writes::kOpen) return;
  ToWire(event, &unsent_.emplace_back());
  if (!writing_) WriteNext();
}

void AttendStream::FinishWriting() {
  if (writes_ == Writes::kOpen) writes_ = Writes::kFinishing;
  if (!writing_) WriteNext();
}

void AttendStream::Abandon() {
  handlers_ = {};
  context_.TryCancel();
  Release();
}

void AttendStream::OnReadDone(bool ok) {
  boost::asio::post(io_, [this, ok] { HandleRead(ok); });
}

void AttendStream::OnWriteDone(bool ok) {
  boost::asio::post(io_, [this, ok] { HandleWritten(ok); });
}

void AttendStream::OnDone(const grpc::Status& status) {
  boost::asio::post(io_, [self = std::unique_ptr<AttendStream>(this), status] {
    if (const auto handle = self->handlers_.on_done) handle(status);
  });
}

void AttendStream::HandleRead(bool ok) {
  // The daemon's side has ended; without our hold the call ends, too.
  if (!ok) return Release();
  // A copy, as the handler may abandon us.
  if (const auto handle = handlers_.on_directive) handle(directive_);
  // Without our hold gRPC may be done with the call already.
  if (!released_) StartRead(&directive_);
}

void AttendStream::HandleWritten(bool ok) {
  writing_ = false;
  unsent_.pop_front();
  if (ok) WriteNext();
}

void AttendStream::WriteNext() {
  if (released_) return;
  if (!unsent_.empty()) {
    writing_ = true;
    StartWrite(&unsent_.front());
  } else if (writes_ == Writes::kFinishing) {
    writes_ = Writes::kDone;
    StartWritesDone();
  }
}

void AttendStream::Release() {
  if (released_) return;
  released_ = true;
  RemoveHold();
}

}  // namespace muster::rendezvous
