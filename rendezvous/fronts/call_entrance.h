// Where every call of a daemon comes in.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/fronts/access.h"
#include "rendezvous/fronts/admission.h"
#include "rendezvous/fronts/call_places.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/net/call_gate.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// gRPC is given this one service, which knows the calls by their names (permissions.h) and leads
// each to the front that answers it. So what holds for all of them is decided in one place: how
// many there may be (CallGate, CallPlaces), whose message is read when (EarlyReads, ReadTurns), who
// may make the call, and what becomes of answers that nobody takes (UntakenAnswers).
//
// gRPC calls CreateReactor on its own threads; all else is the loop's. Outlives the server that it
// is registered with.
class CallEntrance final : public grpc::CallbackGenericService {
 public:
  struct Options {
    // Asked for each call; must outlive the entrance.
    Access access;
    // Unary calls wait for it; others end, as their clients come again. May be empty.
    AwaitAccess await_access{};
    // How many calls there may be.
    CallCounts::Limits calls;
    // Told from where calls were refused at the gate, and how many. May be empty.
    std::function<void(const Peer&, std::uint64_t refused)> on_refused;
    // Ends the connection from there: it takes no answers (UntakenAnswers), or goes on calling when
    // it has as many calls as it may (CallGate). May be empty.
    std::function<void(const Peer&)> drop;
  };

  CallEntrance(boost::asio::io_context& loop, Options options);

  // Of the server's credentials.
  const std::shared_ptr<CallGate>& gate() const { return gate_; }

  // How calls are answered, said before the server starts: on the loop, with the jobs that the
  // caller may touch. The request and the response live as long as the call.
  template <typename Request, typename Response>
  using Answer =
      std::function<void(Driver&, const std::shared_ptr<LoopCall>&, const Request&, Response*)>;
  template <typename Request, typename Response>
  void Serve(Rpc rpc, Answer<Request, Response> answer) {
    AddUnary(rpc, &Request::default_instance(), &Response::default_instance(),
             [answer = std::move(answer)](const std::shared_ptr<LoopCall>& call) {
               answer(call->driver(), call, static_cast<const Request&>(call->request()),
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

  // A call that was admitted may go on: its caller still has the right to it. While it is open.
  bool MayGoOn(Rpc rpc, const grpc::CallbackServerContext& call) const {
    return options_.access(rpc, call).ok();
  }

  // Whose message is read when, for calls of both sides' streams.
  ReadTurns& turns() { return shared_.turns; }

  // Where a call that ends otherwise than as a LoopCall is counted until its client knows.
  UntakenAnswers& untaken() { return shared_.untaken; }

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
  CallPlaces places_;
  // By what gRPC calls them: "/muster.store.v1.Store/Get". Not changed once the server runs.
  std::unordered_map<std::string, Make> calls_;
  bool closed_ = false;
};

}  // namespace muster::rendezvous
