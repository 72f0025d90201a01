#include "rendezvous/tunnel/tunnel_stream.h"

#include <memory>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {

TunnelStream::TunnelStream(boost::asio::io_context& io, tunnel::v1::Tunnel::Stub& stub,
                           const tunnel::v1::Open& open, Relay::Socket worker,
                           std::vector<char>& buffer, Handlers handlers)
    : io_(io),
      stay_(io.get_executor()),
      handlers_(std::move(handlers)),
      relay_(std::move(worker), *this, buffer) {
  context_.set_wait_for_ready(true);
  *out_.mutable_open() = open;
  stub.async()->Carry(&context_, this);
  StartWrite(&out_);
  // Holds the stream open for writes that come from the loop.
  AddHold();
  StartCall();
}

void TunnelStream::Abandon() {
  handlers_ = {};
  relay_.OnBroken();
  context_.TryCancel();
  Release();
}

void TunnelStream::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return;
  boost::asio::post(io_, [this] {
    if (const auto handle = handlers_.on_answered) handle();
  });
}

void TunnelStream::OnReadDone(bool ok) {
  boost::asio::post(io_, [this, ok] { HandleRead(ok); });
}

void TunnelStream::OnWriteDone(bool ok) {
  boost::asio::post(io_, [this, ok] { HandleWritten(ok); });
}

void TunnelStream::OnDone(const grpc::Status& status) {
  boost::asio::post(io_, [self = std::unique_ptr<TunnelStream>(this), status] {
    self->relay_.OnBroken();
    if (const auto handle = self->handlers_.on_done) handle(status);
  });
}

void TunnelStream::Read() {
  if (!released_) StartRead(&in_);
}

void TunnelStream::Write(std::string_view bytes) {
  if (released_) return;
  out_.Clear();
  out_.set_data(bytes.data(), bytes.size());
  StartWrite(&out_);
}

void TunnelStream::WriteEnd() {
  if (released_) return;
  out_.Clear();
  out_.set_end(true);
  StartWrite(&out_);
}

void TunnelStream::Finish() {
  Release();
}

void TunnelStream::Abort() {
  if (!released_) context_.TryCancel();
  Release();
}

void TunnelStream::HandleRead(bool ok) {
  if (!ok) return Break();
  if (in_.end()) return relay_.OnEnd();
  relay_.OnBytes(std::move(*in_.mutable_data()));
}

void TunnelStream::HandleWritten(bool ok) {
  if (!ok) return Break();
  if (std::exchange(opened_, true)) return relay_.OnWritten();
  if (!relay_.over()) relay_.Start();
}

void TunnelStream::Break() {
  relay_.OnBroken();
  Release();
}

void TunnelStream::Release() {
  if (std::exchange(released_, true)) return;
  RemoveHold();
}

}  // namespace muster::rendezvous
