#include "rendezvous/fronts/loop_call.h"

#include <string>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// gRPC's side of the call. Holds the call weakly: whoever has yet to answer it keeps it alive.
class LoopCall::Reactor final : public grpc::ServerUnaryReactor {
 public:
  explicit Reactor(boost::asio::io_context& loop) : loop_(loop) {}

  void Bind(std::weak_ptr<LoopCall> call) { call_ = std::move(call); }

 private:
  void OnCancel() override {
    std::shared_ptr<LoopCall> call = call_.lock();
    if (call == nullptr) return;
    boost::asio::post(loop_, [call = std::move(call)] { call->Cancelled(); });
  }
  void OnDone() override { delete this; }

  boost::asio::io_context& loop_;
  std::weak_ptr<LoopCall> call_;
};

grpc::ServerUnaryReactor* LoopCall::Start(boost::asio::io_context& loop, Work work) {
  auto* reactor = new Reactor(loop);  // deleted by OnDone
  std::shared_ptr<LoopCall> call(new LoopCall(reactor));
  reactor->Bind(call);
  boost::asio::post(loop, [call = std::move(call), work = std::move(work)]() mutable {
    if (!call->finished()) work(std::move(call));
  });
  return reactor;
}

LoopCall::~LoopCall() {
  Finish(absl::UnavailableError("the daemon is stopping"));
}

void LoopCall::Finish(const absl::Status& status) {
  if (finished()) return;
  on_cancel_ = nullptr;
  std::exchange(reactor_, nullptr)->Finish(ToGrpcStatus(status));
}

void LoopCall::Cancelled() {
  if (finished()) return;
  const std::function<void()> on_cancel = std::exchange(on_cancel_, nullptr);
  Finish(absl::CancelledError("the client cancelled the call"));
  if (on_cancel) on_cancel();
}

}  // namespace muster::rendezvous
