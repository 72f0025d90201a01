#include "rendezvous/fronts/grpc_store_front.h"

#include "absl/strings/str_cat.h"
#include "rendezvous/core/job/key_value_store.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/quotas.h"

namespace muster::rendezvous {
namespace {

using google::protobuf::RepeatedPtrField;

// What a value costs in a message beside its bytes: tags and lengths.
constexpr std::size_t kBytesPerValue = 16;
// A longer timeout than this is as good as none, and cannot be added to the time.
constexpr std::chrono::hours kLongestTimeout(24 * 365);

std::vector<std::string_view> Views(const RepeatedPtrField<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

template <typename Request>
std::optional<Duration> Timeout(const Request& request) {
  constexpr std::chrono::milliseconds kLongest(kLongestTimeout);
  if (!request.has_timeout_ms()) return std::nullopt;
  if (request.timeout_ms() > static_cast<std::uint64_t>(kLongest.count())) return std::nullopt;
  return std::chrono::milliseconds(request.timeout_ms());
}

std::optional<TimePoint> Deadline(std::optional<Duration> timeout) {
  if (!timeout) return std::nullopt;
  return std::chrono::steady_clock::now() + *timeout;
}

}  // namespace

GrpcStoreFront::GrpcStoreFront(RpcRouter& router, Admit admit) : admit_(std::move(admit)) {
  Serve(router, Rpc::kStoreGet, &GrpcStoreFront::Get);
  Serve(router, Rpc::kStoreSet, &GrpcStoreFront::Set);
  Serve(router, Rpc::kStoreAdd, &GrpcStoreFront::Add);
  Serve(router, Rpc::kStoreCompareSet, &GrpcStoreFront::CompareSet);
  Serve(router, Rpc::kStoreAppend, &GrpcStoreFront::Append);
  Serve(router, Rpc::kStoreDelete, &GrpcStoreFront::Delete);
  Serve(router, Rpc::kStoreCheck, &GrpcStoreFront::Check);
  Serve(router, Rpc::kStoreWait, &GrpcStoreFront::Wait);
  Serve(router, Rpc::kStoreBarrier, &GrpcStoreFront::Barrier);
  Serve(router, Rpc::kStoreNumKeys, &GrpcStoreFront::NumKeys);
  Serve(router, Rpc::kStoreMultiGet, &GrpcStoreFront::MultiGet);
  Serve(router, Rpc::kStoreMultiSet, &GrpcStoreFront::MultiSet);
}

template <typename Request, typename Response>
void GrpcStoreFront::Serve(RpcRouter& router, Rpc rpc,
                           void (GrpcStoreFront::*answer)(const Call&, const Request&, Response*)) {
  router.Serve<Request, Response>(
      rpc, [this, answer](DaemonLoop&, const Call& call, const Request& request,
                          Response* response) { (this->*answer)(call, request, response); });
}

void GrpcStoreFront::Close() {
  for (auto& [id, open] : std::exchange(open_, {})) {
    id.first->Cancel(id.second);
    open.call->Finish(absl::UnavailableError("the daemon is stopping"));
  }
}

void GrpcStoreFront::Get(const Call& call, const store::v1::GetRequest& request,
                         store::v1::GetResponse* response) {
  const auto read = [&request, response](KeyValueStore& store) {
    const std::string* value = store.Get(request.key());
    if (value == nullptr) {
      return absl::NotFoundError(absl::StrCat("get ", ShownKey(request.key()), ": no such key"));
    }
    response->set_value(*value);
    return absl::OkStatus();
  };
  StoreCall what{.run_id = request.run_id(), .body = read};
  if (request.has_timeout_ms()) {
    what.wait = StoreCall::Wait{.keys = {request.key()}, .deadline = Deadline(Timeout(request))};
  }
  Make(call, what);
}

void GrpcStoreFront::Set(const Call& call, const store::v1::SetRequest& request,
                         store::v1::SetResponse*) {
  Write(call, request.run_id(),
        [&request](KeyValueStore& store) { return store.Set(request.key(), request.value()); });
}

void GrpcStoreFront::Add(const Call& call, const store::v1::AddRequest& request,
                         store::v1::AddResponse* response) {
  Write(call, request.run_id(), [&request, response](KeyValueStore& store) {
    const absl::StatusOr<std::int64_t> sum =
        store.Add(request.key(), request.delta(), KeyValueStore::Overflow::kRefused);
    if (sum.ok()) response->set_value(*sum);
    return sum.status();
  });
}

void GrpcStoreFront::CompareSet(const Call& call, const store::v1::CompareSetRequest& request,
                                store::v1::CompareSetResponse* response) {
  Write(call, request.run_id(), [&request, response](KeyValueStore& store) {
    auto outcome = store.CompareSet(request.key(), request.expected(), request.desired());
    if (!outcome.ok()) return outcome.status();
    response->set_stored(outcome->stored);
    response->set_value(std::move(outcome->value));
    return absl::OkStatus();
  });
}

void GrpcStoreFront::Append(const Call& call, const store::v1::AppendRequest& request,
                            store::v1::AppendResponse*) {
  Write(call, request.run_id(),
        [&request](KeyValueStore& store) { return store.Append(request.key(), request.suffix()); });
}

void GrpcStoreFront::Delete(const Call& call, const store::v1::DeleteRequest& request,
                            store::v1::DeleteResponse* response) {
  Write(call, request.run_id(), [&request, response](KeyValueStore& store) {
    response->set_deleted(store.Delete(request.key()));
    return absl::OkStatus();
  });
}

void GrpcStoreFront::Check(const Call& call, const store::v1::CheckRequest& request,
                           store::v1::CheckResponse* response) {
  Read(call, request.run_id(), [&request, response](KeyValueStore& store) {
    response->set_all_exist(store.Check(Views(request.keys())));
    return absl::OkStatus();
  });
}

void GrpcStoreFront::Wait(const Call& call, const store::v1::WaitRequest& request,
                          store::v1::WaitResponse*) {
  Make(call, {.run_id = request.run_id(),
              .body = [](KeyValueStore&) { return absl::OkStatus(); },
              .wait = StoreCall::Wait{.keys = Views(request.keys()),
                                      .deadline = Deadline(Timeout(request))}});
}

void GrpcStoreFront::Barrier(const Call& call, const store::v1::BarrierRequest& request,
                             store::v1::BarrierResponse*) {
  const Meeting meeting{&call->daemon_loop(), request.run_id(), request.name()};
  // Whoever was locked out must not let the others go. Only the last to come asks.
  const auto there = meetings_.find(meeting);
  if (there != meetings_.end() && there->second.size() + 1 >= request.count()) {
    DismissRevoked(meeting);
  }
  const std::optional<CallId> waits =
      Make(call, {.run_id = request.run_id(),
                  .body = [](KeyValueStore&) { return absl::OkStatus(); },
                  .arrival = Arrival{.name = request.name(),
                                     .count = request.count(),
                                     .caller = request.caller(),
                                     .deadline = Deadline(Timeout(request))}});
  if (waits) open_.at({&call->daemon_loop(), *waits}).at_barrier = BeAt(meeting, *waits);
}

void GrpcStoreFront::DismissRevoked(const Meeting& meeting) {
  DaemonLoop* const daemon_loop = std::get<0>(meeting);
  const std::set<CallId> all = meetings_.at(meeting);
  for (const CallId id : all) {
    const auto open = open_.find({daemon_loop, id});
    if (open == open_.end() || open->second.call->MayGoOn()) continue;
    const Call call = open->second.call;
    daemon_loop->Cancel(id);
    open_.erase(open);
    call->Finish(NoLongerAllowed());
  }
}

std::shared_ptr<void> GrpcStoreFront::BeAt(const Meeting& meeting, CallId id) {
  meetings_[meeting].insert(id);
  return std::shared_ptr<void>(this, [this, meeting, id](void*) {
    const auto found = meetings_.find(meeting);
    found->second.erase(id);
    if (found->second.empty()) meetings_.erase(found);
  });
}

void GrpcStoreFront::NumKeys(const Call& call, const store::v1::NumKeysRequest& request,
                             store::v1::NumKeysResponse* response) {
  Read(call, request.run_id(), [response](KeyValueStore& store) {
    response->set_num_keys(store.NumKeys());
    return absl::OkStatus();
  });
}

void GrpcStoreFront::MultiGet(const Call& call, const store::v1::MultiGetRequest& request,
                              store::v1::MultiGetResponse* response) {
  Read(call, request.run_id(), [&request, response](KeyValueStore& store) {
    const std::vector<const std::string*> values = store.MultiGet(Views(request.keys()));
    // Summed before anything is copied: a small request may name a large value many times.
    std::size_t bytes = 0;
    for (const std::string* value : values) {
      bytes += kBytesPerValue + (value == nullptr ? 0 : value->size());
    }
    if (bytes > limits::kAnswerBytes.most) {
      return LimitRefusal(
          limits::kAnswerBytes,
          absl::StrCat("multi-get: bytes of the answer would be ", bytes, ", the limit is ",
                       limits::kAnswerBytes.most, ": ask for fewer keys at once"));
    }
    for (const std::string* value : values) {
      store::v1::MaybeValue* answer = response->add_values();
      if (value != nullptr) answer->set_value(*value);
    }
    return absl::OkStatus();
  });
}

void GrpcStoreFront::MultiSet(const Call& call, const store::v1::MultiSetRequest& request,
                              store::v1::MultiSetResponse*) {
  Write(call, request.run_id(), [&request](KeyValueStore& store) {
    std::vector<KeyValueStore::Entry> entries;
    entries.reserve(request.entries_size());
    for (const store::v1::KeyValue& entry : request.entries()) {
      entries.emplace_back(entry.key(), entry.value());
    }
    return store.MultiSet(entries);
  });
}

void GrpcStoreFront::Read(const Call& call, const std::string& run_id,
                          const StoreCall::Body& body) {
  Make(call, {.run_id = run_id, .body = body});
}

void GrpcStoreFront::Write(const Call& call, const std::string& run_id,
                           const StoreCall::Body& body) {
  Make(call, {.run_id = run_id, .body = body, .writes = true});
}

absl::StatusOr<std::shared_ptr<void>> GrpcStoreFront::AdmitWait(const Call& call) {
  if (waiting_ >= limits::kWaitingCalls.most) {
    return LimitRefusal(limits::kWaitingCalls,
                        absl::StrCat(waiting_, " calls wait already, which is the limit"));
  }
  // The one that asks is among them.
  if (call->daemon_loop().waiting_calls() > limits::kWaitingCallsOfTenant.most) {
    return LimitRefusal(limits::kWaitingCallsOfTenant,
                        absl::StrCat(limits::kWaitingCallsOfTenant.most,
                                     " calls of this user wait already, which is the limit"));
  }
  std::shared_ptr<void> connection;
  if (admit_) {
    auto admitted = admit_(ParsePeer(call->context().peer()));
    if (!admitted.ok()) return admitted.status();
    connection = *std::move(admitted);
  }
  ++waiting_;
  // Counted here from now on.
  call->LeavePlace();
  return std::shared_ptr<void>(this, [this, connection](void*) { --waiting_; });
}

std::optional<CallId> GrpcStoreFront::Make(const Call& call, const StoreCall& what) {
  DaemonLoop& daemon_loop = call->daemon_loop();
  const CallId id = daemon_loop.Call(
      what, [this, call, &daemon_loop](CallId answered, const absl::Status& status) {
        open_.erase({&daemon_loop, answered});
        call->Finish(status);
      });
  if (call->finished()) return std::nullopt;
  Open open{.call = call, .admitted = nullptr};
  if (what.wait || what.arrival) {
    auto wait = AdmitWait(call);
    if (!wait.ok()) {
      daemon_loop.Cancel(id);
      call->Finish(wait.status());
      return std::nullopt;
    }
    open.admitted = *std::move(wait);
  }
  // The client may go away in any state of the call, also while its answer waits for the disk.
  call->OnCancel([this, &daemon_loop, id] {
    daemon_loop.Cancel(id);
    open_.erase({&daemon_loop, id});
  });
  open_.emplace(OpenId(&daemon_loop, id), std::move(open));
  return id;
}

}  // namespace muster::rendezvous
