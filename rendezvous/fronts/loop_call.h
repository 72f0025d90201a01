// One unary call of gRPC's callback API that is answered on the loop.
//
// gRPC's threads make the call, report its cancellation and free it; everything in between happens
// on the loop's thread. gRPC wants each call finished exactly once, whatever else happens: Finish
// does so the first time and does nothing afterwards. A call that is dropped without having been
// finished (the loop is gone, a front let go of it) is finished with UNAVAILABLE.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>
#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"

namespace muster::rendezvous {

// The gRPC status of the same code and message: both enumerations are google.rpc.Code.
grpc::Status ToGrpcStatus(const absl::Status& status);

class LoopCall {
 public:
  using Work = std::function<void(std::shared_ptr<LoopCall>)>;

  // Called by a service's method, on one of gRPC's threads: runs `work` on the loop and returns
  // what the method must return. The request and the response live until the call is finished, no
  // longer. The server must not be shut down from within the loop, or it would wait for work that
  // waits for it.
  static grpc::ServerUnaryReactor* Start(boost::asio::io_context& loop, Work work);

  LoopCall(const LoopCall&) = delete;
  LoopCall& operator=(const LoopCall&) = delete;
  ~LoopCall();

  // Answers the call, with the gRPC status of the same code and message.
  void Finish(const absl::Status& status);
  bool finished() const { return reactor_ == nullptr; }

  // What to do, on the loop, when the call ends early: the client cancelled it, went away, or its
  // deadline passed. The call is finished (CANCELLED) by then. Finish forgets it.
  void OnCancel(std::function<void()> on_cancel) { on_cancel_ = std::move(on_cancel); }

 private:
  class Reactor;

  explicit LoopCall(Reactor* reactor) : reactor_(reactor) {}
  void Cancelled();

  Reactor* reactor_;  // null once finished: gRPC frees it then
  std::function<void()> on_cancel_;
};

}  // namespace muster::rendezvous
