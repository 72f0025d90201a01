#include "rendezvous/fronts/rpc_router.h"

#include <chrono>

#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"

#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {

std::shared_ptr<void> CallQuota::Take(const std::string& tenant,
                                      const boost::asio::ip::address& host) {
  const auto count = counts_->try_emplace({tenant, host}).first;
  if (count->second >= most_) return nullptr;
  ++count->second;
  return {counts_.get(), [counts = counts_, count](void*) {
            if (--count->second == 0) counts->erase(count);
          }};
}

namespace {

// Ends a call at once.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  Refusal(LoopCall::Shared& shared, const Peer& peer, const grpc::Status& why, CallGate::Pass pass)
      : shared_(shared), pass_(std::move(pass)) {
    boost::asio::post(shared_.loop, shared_.lifetime.Guard([&shared, peer, id = id_] {
      *id = shared.untaken.Add(peer, 0);
    }));
    Finish(why);
  }

 private:
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override {
    boost::asio::post(shared_.loop, shared_.lifetime.Guard([&shared = shared_, id = id_] {
      shared.untaken.Taken(*id);
    }));
    if (cancelled_) pass_.Linger();
    delete this;
  }

  LoopCall::Shared& shared_;
  CallGate::Pass pass_;
  bool cancelled_ = false;  // gRPC's; OnDone comes after OnCancel
  // The loop's.
  const std::shared_ptr<UnreadResponses::Id> id_ = std::make_shared<UnreadResponses::Id>(0);
};

}  // namespace

RpcRouter::RpcRouter(boost::asio::io_context& loop, Options options)
    : options_(std::move(options)),
      shared_{.loop = loop,
              .early = std::make_shared<EarlyReads>(static_cast<int>(limits::kEarlyReads.most)),
              .turns = ReadScheduler(loop,
                                     {.at_once = limits::kReads.most,
                                      .of_tenant = limits::kReadsOfTenant.most,
                                      .of_host = limits::kReadsOfHost.most,
                                      .patience = std::chrono::seconds(limits::kReadSeconds.most)}),
              .untaken = UnreadResponses(loop,
                                         {.bytes = limits::kUntakenBytes.most,
                                          .answers = limits::kUntakenAnswers.most,
                                          .patience = std::chrono::seconds(1)},
                                         [this](const Peer& peer) {
                                           if (options_.drop) options_.drop(peer);
                                         })},
      gate_(std::make_shared<CallGate>(options_.calls,
                                       [this](const std::string& peer) { EndFlood(peer); })),
      places_(limits::kCallsOfHost.most) {}

void RpcRouter::EndFlood(const std::string& text) {
  boost::asio::post(shared_.loop, shared_.lifetime.Guard([this, peer = ParsePeer(text)] {
    if (options_.on_refused) options_.on_refused(peer, options_.calls.refused_of_connection);
    if (options_.drop) options_.drop(peer);
  }));
}

void RpcRouter::ServeStream(Rpc rpc, Make make) {
  calls_[absl::StrCat("/", std::string(PermissionFor(rpc).method))] = std::move(make);
}

void RpcRouter::AddUnary(Rpc rpc, const google::protobuf::MessageLite* request,
                         const google::protobuf::MessageLite* response,
                         std::function<void(const std::shared_ptr<LoopCall>&)> answer) {
  ServeStream(rpc, [this, method = LoopCall::Method{
                              .request = request,
                              .response = response,
                              .admit =
                                  [this, rpc](const LoopCall& call) {
                                    return Admit(rpc, call.context(), call.caller(), call.pass());
                                  },
                              .may_go_on =
                                  [this, rpc](const LoopCall& call) {
                                    // All that wait are told that the daemon stops.
                                    return closed_ || MayGoOn(rpc, call.context());
                                  },
                              .await_admission =
                                  [this](const LoopCall& call, std::function<void()> over) {
                                    return !closed_ && options_.await_access &&
                                           options_.await_access(call.context(), std::move(over));
                                  },
                              .answer = std::move(answer)}](
                       const grpc::CallbackServerContext& context, CallGate::Pass pass) {
    return LoopCall::Start(shared_, method, context, std::move(pass));
  });
}

absl::StatusOr<Admission> RpcRouter::Admit(Rpc rpc, const grpc::CallbackServerContext& call,
                                           const Caller& caller, const CallGate::Pass& pass) {
  if (closed_) return absl::UnavailableError("the daemon is stopping");
  const std::uint64_t refused = pass.TakeRefused();
  if (refused > 0 && options_.on_refused) options_.on_refused(caller.peer, refused);
  Admission admission{.place = places_.Take(pass.tenant(), caller.host)};
  if (admission.place == nullptr) {
    if (options_.on_refused) options_.on_refused(caller.peer, 1);
    return LimitRefusal(limits::kCallsOfHost,
                        absl::StrCat(limits::kCallsOfHost.most,
                                     " calls of this host are under way, which is the limit"));
  }
  const absl::StatusOr<DaemonLoop*> daemon_loop = options_.access(rpc, call);
  if (!daemon_loop.ok()) return daemon_loop.status();
  admission.daemon_loop = *daemon_loop;
  return admission;
}

bool RpcRouter::CountAgain(const Caller& caller, Admission& admission, CallGate::Pass& pass) {
  if (admission.place == nullptr) admission.place = places_.Take(pass.tenant(), caller.host);
  return admission.place != nullptr && pass.Resume();
}

LimitCounts RpcRouter::RefusedByLimit() const {
  LimitCounts counts = shared_.refused;
  const CallCounts::Refused at_gate = gate_->refused_by_limit();
  counts.Count(limits::kCallsOfConnection, at_gate.of_connection);
  counts.Count(limits::kCallsOfTenant, at_gate.of_tenant);
  counts.Count(limits::kCalls, at_gate.of_all);
  counts.Count(limits::kUntakenBytes, shared_.untaken.dropped_for_bytes());
  counts.Count(limits::kUntakenAnswers, shared_.untaken.dropped_for_number());
  return counts;
}

void RpcRouter::Close() {
  closed_ = true;
  while (!shared_.opening.empty()) {
    const std::shared_ptr<LoopCall> call = *shared_.opening.begin();
    call->Finish(absl::UnavailableError("the daemon is stopping"));
  }
}

grpc::ServerGenericBidiReactor* RpcRouter::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  CallGate::Pass pass = gate_->PassOf(*context);
  const auto call = calls_.find(context->method());
  if (call == calls_.end()) {
    return new Refusal(shared_, ParsePeer(context->peer()),
                       {grpc::StatusCode::UNIMPLEMENTED,
                        absl::StrCat("there is no call ", OneLine(context->method(), 128))},
                       std::move(pass));
  }
  return call->second(*context, std::move(pass));
}

}  // namespace muster::rendezvous
