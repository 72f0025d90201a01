#include "rendezvous/fronts/grpc_store_front.h"

#include "absl/strings/str_cat.h"
#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/limit_counts.h"
#include "rendezvous/core/limits.h"

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

GrpcStoreFront::GrpcStoreFront(CallEntrance& entrance, Admit admit) : admit_(std::move(admit)) {
  Serve(entrance, Rpc::kStoreGet, &GrpcStoreFront::Get);
  Serve(entrance, Rpc::kStoreSet, &GrpcStoreFront::Set);
  Serve(entrance, Rpc::kStoreAdd, &GrpcStoreFront::Add);
  Serve(entrance, Rpc::kStoreCompareSet, &GrpcStoreFront::CompareSet);
  Serve(entrance, Rpc::kStoreAppend, &GrpcStoreFront::Append);
  Serve(entrance, Rpc::kStoreDelete, &GrpcStoreFront::Delete);
  Serve(entrance, Rpc::kStoreCheck, &GrpcStoreFront::Check);
  Serve(entrance, Rpc::kStoreWait, &GrpcStoreFront::Wait);
  Serve(entrance, Rpc::kStoreBarrier, &GrpcStoreFront::Barrier);
  Serve(entrance, Rpc::kStoreNumKeys, &GrpcStoreFront::NumKeys);
  Serve(entrance, Rpc::kStoreMultiGet, &GrpcStoreFront::MultiGet);
  Serve(entrance, Rpc::kStoreMultiSet, &GrpcStoreFront::MultiSet);
}

template <typename Request, typename Response>
void GrpcStoreFront::Serve(CallEntrance& entrance, Rpc rpc,
                           void (GrpcStoreFront::*answer)(Driver&, const Call&, const Request&,
                                                          Response*)) {
  entrance.Serve<Request, Response>(
      rpc,
      [this, answer](Driver& driver, const Call& call, const Request& request, Response* response) {
        (this->*answer)(driver, call, request, response);
      });
}

void GrpcStoreFront::Close() {
  for (auto& [id, open] : std::exchange(open_, {})) {
    id.first->Cancel(id.second);
    open.call->Finish(absl::UnavailableError("the daemon is stopping"));
  }
}

void GrpcStoreFront::Get(Driver& driver, const Call& call, const store::v1::GetRequest& request,
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
  Make(driver, call, what);
}

void GrpcStoreFront::Set(Driver& driver, const Call& call, const store::v1::SetRequest& request,
                         store::v1::SetResponse*) {
  Write(driver, call, request.run_id(),
        [&request](KeyValueStore& store) { return store.Set(request.key(), request.value()); });
}

void GrpcStoreFront::Add(Driver& driver, const Call& call, const store::v1::AddRequest& request,
                         store::v1::AddResponse* response) {
  Write(driver, call, request.run_id(), [&request, response](KeyValueStore& store) {
    const absl::StatusOr<std::int64_t> sum =
        store.Add(request.key(), request.delta(), KeyValueStore::Overflow::kRefused);
    if (sum.ok()) response->set_value(*sum);
    return sum.status();
  });
}

void GrpcStoreFront::CompareSet(Driver& driver, const Call& call,
                                const store::v1::CompareSetRequest& request,
                                store::v1::CompareSetResponse* response) {
  Write(driver, call, request.run_id(), [&request, response](KeyValueStore& store) {
    auto outcome = store.CompareSet(request.key(), request.expected(), request.desired());
    if (!outcome.ok()) return outcome.status();
    response->set_stored(outcome->stored);
    response->set_value(std::move(outcome->value));
    return absl::OkStatus();
  });
}

void GrpcStoreFront::Append(Driver& driver, const Call& call,
                            const store::v1::AppendRequest& request, store::v1::AppendResponse*) {
  Write(driver, call, request.run_id(),
        [&request](KeyValueStore& store) { return store.Append(request.key(), request.suffix()); });
}

void GrpcStoreFront::Delete(Driver& driver, const Call& call,
                            const store::v1::DeleteRequest& request,
                            store::v1::DeleteResponse* response) {
  Write(driver, call, request.run_id(), [&request, response](KeyValueStore& store) {
    response->set_deleted(store.Delete(request.key()));
    return absl::OkStatus();
  });
}

void GrpcStoreFront::Check(Driver& driver, const Call& call, const store::v1::CheckRequest& request,
                           store::v1::CheckResponse* response) {
  Read(driver, call, request.run_id(), [&request, response](KeyValueStore& store) {
    response->set_all_exist(store.Check(Views(request.keys())));
    return absl::OkStatus();
  });
}

void GrpcStoreFront::Wait(Driver& driver, const Call& call, const store::v1::WaitRequest& request,
                          store::v1::WaitResponse*) {
  Make(driver, call,
       {.run_id = request.run_id(),
        .body = [](KeyValueStore&) { return absl::OkStatus(); },
        .wait = StoreCall::Wait{.keys = Views(request.keys()),
                                .deadline = Deadline(Timeout(request))}});
}

void GrpcStoreFront::Barrier(Driver& driver, const Call& call,
                             const store::v1::BarrierRequest& request,
                             store::v1::BarrierResponse*) {
  Make(driver, call,
       {.run_id = request.run_id(),
        .body = [](KeyValueStore&) { return absl::OkStatus(); },
        .arrival = Arrival{.name = request.name(),
                           .count = request.count(),
                           .caller = request.caller(),
                           .deadline = Deadline(Timeout(request))}});
}

void GrpcStoreFront::NumKeys(Driver& driver, const Call& call,
                             const store::v1::NumKeysRequest& request,
                             store::v1::NumKeysResponse* response) {
  Read(driver, call, request.run_id(), [response](KeyValueStore& store) {
    response->set_num_keys(store.NumKeys());
    return absl::OkStatus();
  });
}

void GrpcStoreFront::MultiGet(Driver& driver, const Call& call,
                              const store::v1::MultiGetRequest& request,
                              store::v1::MultiGetResponse* response) {
  Read(driver, call, request.run_id(), [&request, response](KeyValueStore& store) {
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

void GrpcStoreFront::MultiSet(Driver& driver, const Call& call,
                              const store::v1::MultiSetRequest& request,
                              store::v1::MultiSetResponse*) {
  Write(driver, call, request.run_id(), [&request](KeyValueStore& store) {
    std::vector<KeyValueStore::Entry> entries;
    entries.reserve(request.entries_size());
    for (const store::v1::KeyValue& entry : request.entries()) {
      entries.emplace_back(entry.key(), entry.value());
    }
    return store.MultiSet(entries);
  });
}

void GrpcStoreFront::Read(Driver& driver, const Call& call, const std::string& run_id,
                          const StoreCall::Body& body) {
  Make(driver, call, {.run_id = run_id, .body = body});
}

void GrpcStoreFront::Write(Driver& driver, const Call& call, const std::string& run_id,
                           const StoreCall::Body& body) {
  Make(driver, call, {.run_id = run_id, .body = body, .writes = true});
}

absl::StatusOr<std::shared_ptr<void>> GrpcStoreFront::AdmitWait(const Driver& driver,
                                                                const Call& call) {
  if (waiting_ >= limits::kWaitingCalls.most) {
    return LimitRefusal(limits::kWaitingCalls,
                        absl::StrCat(waiting_, " calls wait already, which is the limit"));
  }
  // The one that asks is among them.
  if (driver.waiting_calls() > limits::kWaitingCallsOfTenant.most) {
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

void GrpcStoreFront::Make(Driver& driver, const Call& call, const StoreCall& what) {
  const CallId id =
      driver.Call(what, [this, call, &driver](CallId answered, const absl::Status& status) {
        open_.erase({&driver, answered});
        call->Finish(status);
      });
  if (call->finished()) return;
  Open open{.call = call, .admitted = nullptr};
  if (what.wait || what.arrival) {
    auto wait = AdmitWait(driver, call);
    if (!wait.ok()) {
      driver.Cancel(id);
      return call->Finish(wait.status());
    }
    open.admitted = *std::move(wait);
  }
  // The client may go away in any state of the call, also while its answer waits for the disk.
  call->OnCancel([this, &driver, id] {
    driver.Cancel(id);
    open_.erase({&driver, id});
  });
  open_.emplace(OpenId(&driver, id), std::move(open));
}

}  // namespace muster::rendezvous
