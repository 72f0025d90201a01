// Where every call of a daemon comes in.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>

#include "absl/status/statusor.h"

#include "rendezvous/core/values/quotas.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/net/call_gate.h"
#include "rendezvous/net/peer.h"

namespace grpc {
class CallbackServerContext;
}  // namespace grpc

namespace muster::rendezvous {

// What a front asks before it does anything for a caller.

// Asked on the loop, for each call, while the call is open: whose jobs it may touch, or why it may
// touch none (PermissionDenied, one sentence). The DaemonLoop lives as long as the front.
using Access = std::function<absl::StatusOr<DaemonLoop*>(Rpc, const grpc::CallbackServerContext&)>;

// Asked when a caller was answered Unavailable: calls `over` on the loop when the caller may ask
// again, as its jobs can be reached now. False: nothing is known to be in the way.
using AwaitAccess =
    std::function<bool(const grpc::CallbackServerContext&, std::function<void()> over)>;

// How many calls each host of a tenant may have under way.

// Beside the limits of net/call_gate.h, which knows no addresses: so that a single host cannot have
// all the calls that there may be. Lives on the loop's thread.
class CallQuota {
 public:
  explicit CallQuota(std::size_t most_of_host) : most_(most_of_host) {}

  // A place for a call of that host of the tenant's, until the last copy of the result is gone,
  // which may be after this object. Null: it has as many as it may.
  std::shared_ptr<void> Take(const std::string& tenant, const boost::asio::ip::address& host);

 private:
  using Counts = std::map<std::pair<std::string, boost::asio::ip::address>, std::size_t>;

  const std::size_t most_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

// gRPC is given this one service, which knows the calls by their names (permissions.h) and leads
// each to the front that answers it. So what holds for all of them is decided in one place: how
// many there may be (CallGate, CallQuota), whose message is read when (EarlyReads, ReadScheduler),
// who may make the call, and what becomes of answers that nobody takes (UnreadResponses).
//
// gRPC calls CreateReactor on its own threads; all else is the loop's. Outlives the server that it
// is registered with.
class RpcRouter final : public grpc::CallbackGenericService {
 public:
  struct Options {
    // Asked for each call; must outlive the router.
    Access access;
    // Asked for a call that was let in and has waited since: token files may have changed, and are
    // looked at. May be empty: as `access`.
    Access access_again{};
    // Unary calls wait for it; others end, as their clients come again. May be empty.
    AwaitAccess await_access{};
    // How many calls there may be.
    CallCounts::Limits calls;
    // Told from where calls were refused at the gate, and how many. May be empty.
    std::function<void(const Peer&, std::uint64_t refused)> on_refused;
    // Ends the connection from there: it takes no answers (UnreadResponses), or goes on calling
    // when it has as many calls as it may (CallGate). May be empty.
    std::function<void(const Peer&)> drop;
  };

  RpcRouter(boost::asio::io_context& loop, Options options);

  // Of the server's credentials.
  const std::shared_ptr<CallGate>& gate() const { return gate_; }

  // How calls are answered, said before the server starts: on the loop, with the jobs that the
  // caller may touch. The request and the response live as long as the call.
  template <typename Request, typename Response>
  using Answer =
      std::function<void(DaemonLoop&, const std::shared_ptr<LoopCall>&, const Request&, Response*)>;
  template <typename Request, typename Response>
  void Serve(Rpc rpc, Answer<Request, Response> answer) {
    AddUnary(rpc, &Request::default_instance(), &Response::default_instance(),
             [answer = std::move(answer)](const std::shared_ptr<LoopCall>& call) {
               answer(call->daemon_loop(), call, static_cast<const Request&>(call->request()),
                      static_cast<Response*>(&call->response()));
             });
  }

  // A call of both sides' streams: what `make` returns, on one of gRPC's threads, speaks for it,
  // and has to ask Admit on the loop before it reads.
  using Make = std::function<grpc::ServerGenericBidiReactor*(const grpc::CallbackServerContext&,
                                                             CallGate::Pass)>;
  void ServeStream(Rpc rpc, Make make);

  // What the caller may do, or why nothing.
  absl::StatusOr<Admission> Admit(Rpc rpc, const grpc::CallbackServerContext& call,
                                  const Caller& caller, const CallGate::Pass& pass);

  // A call that gave up its place and its pass, as it was counted elsewhere, takes them again.
  // False: there is no room for it.
  bool CountAgain(const Caller& caller, Admission& admission, CallGate::Pass& pass);

  // A call that was admitted may go on: its caller still has the right to it. To be asked before
  // anything is said over a call that has waited, while it is open.
  bool MayGoOn(Rpc rpc, const grpc::CallbackServerContext& call) const {
    return (options_.access_again ? options_.access_again : options_.access)(rpc, call).ok();
  }

  // Whose message is read when, for calls of both sides' streams.
  ReadScheduler& turns() { return shared_.turns; }

  // Where a call that ends otherwise than as a LoopCall is counted until its client knows.
  UnreadResponses& untaken() { return shared_.untaken; }

  // Who ends otherwise than as a LoopCall was refused, or cut off, for a limit.
  void CountRefused(const Limit& limit) { shared_.refused.Count(limit); }
  void CountRefused(const absl::Status& status) { shared_.refused.Count(status); }
  // How many were, since the beginning, for each limit of calls, messages, jobs and stores.
  LimitCounts RefusedByLimit() const;

  // Calls whose request has not been read end with UNAVAILABLE, and so do all that come.
  void Close();

 private:
  void AddUnary(Rpc rpc, const google::protobuf::MessageLite* request,
                const google::protobuf::MessageLite* response,
                std::function<void(const std::shared_ptr<LoopCall>&)> answer);
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  // On any thread.
  void EndFlood(const std::string& text);

  const Options options_;
  LoopCall::Shared shared_;
  const std::shared_ptr<CallGate> gate_;
  CallQuota places_;
  // By what gRPC calls them: "/muster.store.v1.Store/Get". Not changed once the server runs.
  std::unordered_map<std::string, Make> calls_;
  bool closed_ = false;
};

}  // namespace muster::rendezvous
