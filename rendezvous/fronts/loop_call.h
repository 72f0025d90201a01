// One unary call that is answered on the loop.
//
// gRPC's threads show the call, read its request, report its cancellation and free it; everything
// in between happens on the loop's thread. gRPC wants each call finished exactly once, whatever
// else happens: Finish does so the first time and does nothing afterwards. A call that is dropped
// without having been finished (the loop is gone, a front let go of it) is finished with
// UNAVAILABLE.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <utility>

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/lifetime.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/fronts/flow_control.h"
#include "rendezvous/net/call_gate.h"
#include "rendezvous/net/peer.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace muster::rendezvous {

// Who makes a call, and what an admitted caller may do.

// Where a call comes from.
struct Caller {
  Peer peer;
  boost::asio::ip::address host;  // peer.h, HostLine; none: it has no IP address
};

// On any thread, while the call is open.
Caller CallerOf(const grpc::ServerContextBase& call);

struct Admission {
  DaemonLoop* daemon_loop = nullptr;  // of the jobs that the caller may touch
  // Held while the call is under way (CallQuota).
  std::shared_ptr<void> place;
};

// The gRPC status of the same code and message: both enumerations are google.rpc.Code.
grpc::Status ToGrpcStatus(const absl::Status& status);

// What a caller is told who has lost the right to a call since it began.
absl::Status NoLongerAllowed();

class LoopCall : public std::enable_shared_from_this<LoopCall> {
 public:
  // What the calls of a server share. Lives on the loop's thread, and outlives the server.
  struct Shared {
    boost::asio::io_context& loop;
    const std::shared_ptr<EarlyReads> early;  // may be held for longer
    ReadScheduler turns;
    UnreadResponses untaken;
    // How many callers were refused for which limit, as it ended their calls.
    LimitCounts refused{};
    // Those whose request has not been read.
    std::set<std::shared_ptr<LoopCall>> opening;
    const base::Lifetime lifetime;
  };
  // One of the calls that there are. Outlives the server. Its functions are called on the loop, and
  // not once the call is finished.
  struct Method {
    const google::protobuf::MessageLite* request = nullptr;  // of their types
    const google::protobuf::MessageLite* response = nullptr;
    // Before anything is done with the request: what the caller may do, or why nothing.
    std::function<absl::StatusOr<Admission>(const LoopCall&)> admit;
    // Of one that has waited since: whether its caller still has the right to it. May be empty:
    // yes.
    std::function<bool(const LoopCall&)> may_go_on{};
    // Whether one that was told Unavailable may be admitted later: `over` is called then. May be
    // empty.
    std::function<bool(const LoopCall&, std::function<void()> over)> await_admission{};
    // Once it has been read.
    std::function<void(const std::shared_ptr<LoopCall>&)> answer;
  };

  // On one of gRPC's threads: returns what the service has to return for the call. The server must
  // not be shut down from within the loop, or it would wait for work that waits for it.
  static grpc::ServerGenericBidiReactor* Start(Shared& shared, const Method& method,
                                               const grpc::CallbackServerContext& context,
                                               CallGate::Pass pass);

  LoopCall(const LoopCall&) = delete;
  LoopCall& operator=(const LoopCall&) = delete;
  ~LoopCall();

  // Until the call is finished.
  const grpc::CallbackServerContext& context() const { return context_; }
  const CallGate::Pass& pass() const;
  const Caller& caller() const { return caller_; }
  // The jobs of whoever was admitted.
  DaemonLoop& daemon_loop() const { return *admission_.daemon_loop; }
  // The messages, of the method's types; they live as long as this.
  const google::protobuf::MessageLite& request() const { return *request_; }
  google::protobuf::MessageLite& response() const { return *response_; }

  // It waits, and is counted elsewhere from now on; not once it is finished.
  void LeavePlace();

  // Answers the call: with the response, or with the gRPC status of the same code and message.
  // Where its caller has lost the right to it while it waited, that is the answer.
  void Finish(const absl::Status& status);
  bool finished() const { return reactor_ == nullptr; }

  // It has not waited for anything, or its caller still has the right to it. May wait for a disk.
  bool MayGoOn() const;

  // What to do, on the loop, when the call ends early: the client cancelled it, went away, or its
  // deadline passed. The call is finished (CANCELLED) by then. Finish forgets it.
  void OnCancel(std::function<void()> on_cancel) { on_cancel_ = std::move(on_cancel); }

 private:
  class Reactor;

  LoopCall(Shared& shared, const Method& method, const grpc::CallbackServerContext& context,
           Reactor* reactor);
  void Open();
  // Calls Open() again when there is something new. False: there will be nothing.
  bool AwaitAdmission();
  void BeginOpening();
  // The request is read, or will not be.
  void EndOpening();
  void HandleRead();
  void Cancelled();

  Shared& shared_;
  const Method& method_;
  const grpc::CallbackServerContext& context_;
  const Caller caller_;
  const std::unique_ptr<google::protobuf::MessageLite> request_, response_;
  Reactor* reactor_;  // null once finished: gRPC frees it then
  Admission admission_;
  bool has_waited_ = false;                    // since it was admitted
  bool is_opening_ = false;                    // one of those that are Shared::opening
  std::unique_ptr<ReadScheduler::Turn> turn_;  // until the request has been read
  std::function<void()> on_cancel_;
};

// Messages as gRPC's generic service has them: as bytes.

// InvalidArgument: they are no such message. The bytes are gone afterwards.
absl::Status ParseBytes(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message);

// Takes the place of what was in `bytes`.
void ToBytes(const google::protobuf::MessageLite& message, grpc::ByteBuffer* bytes);

}  // namespace muster::rendezvous
