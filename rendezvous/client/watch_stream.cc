#include "rendezvous/client/watch_stream.h"

#include <utility>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {

WatchStream::WatchStream(boost::asio::io_context& io, std::unique_ptr<v1::Rendezvous::Stub> stub,
                         const std::string& run_id, Handlers handlers)
    : io_(io), stub_(std::move(stub)), stay_(io.get_executor()), handlers_(std::move(handlers)) {
  request_.set_run_id(run_id);
  stub_->async()->Watch(&context_, &request_, this);
  StartRead(&update_);
  // Holds the stream open for reads that come from the loop.
  AddHold();
  StartCall();
}

void WatchStream::Abandon() {
  handlers_ = {};
  context_.TryCancel();
  Release();
}

void WatchStream::OnReadDone(bool ok) {
  boost::asio::post(io_, [this, ok] { HandleRead(ok); });
}

void WatchStream::OnDone(const grpc::Status& status) {
  boost::asio::post(io_, [self = std::unique_ptr<WatchStream>(this), status] {
    if (const auto handle = self->handlers_.on_done) handle(status);
  });
}

void WatchStream::HandleRead(bool ok) {
  // The daemon's side has ended; without our hold the call ends, too.
  if (!ok) return Release();
  // A copy, as the handler may abandon us.
  if (const auto handle = handlers_.on_update) handle(update_);
  // Without our hold gRPC may be done with the call already.
  if (!released_) StartRead(&update_);
}

void WatchStream::Release() {
  if (released_) return;
  released_ = true;
  RemoveHold();
}

}  // namespace muster::rendezvous
