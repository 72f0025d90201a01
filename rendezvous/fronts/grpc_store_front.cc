#include "rendezvous/fronts/grpc_store_front.h"

#include "absl/strings/str_cat.h"
#include "rendezvous/core/key_value_store.h"
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

GrpcStoreFront::GrpcStoreFront(boost::asio::io_context& loop, Access access, Admit admit)
    : loop_(loop), access_(std::move(access)), admit_(std::move(admit)) {}

void GrpcStoreFront::Close() {
  closed_ = true;
  for (auto& [id, open] : std::exchange(open_, {})) {
    id.first->Cancel(id.second);
    open.call->Finish(absl::UnavailableError("the daemon is stopping"));
  }
}

GrpcStoreFront::Answer* GrpcStoreFront::Get(Context* context, const store::v1::GetRequest* request,
                                            store::v1::GetResponse* response) {
  const auto read = [request, response](KeyValueStore& store) {
    const std::string* value = store.Get(request->key());
    if (value == nullptr) {
      return absl::NotFoundError(absl::StrCat("get ", ShownKey(request->key()), ": no such key"));
    }
    response->set_value(*value);
    return absl::OkStatus();
  };
  if (!request->has_timeout_ms())
    return AnswerAtOnce(Rpc::kStoreGet, *context, request->run_id(), read);
  return AnswerAfterWait(Rpc::kStoreGet, *context, request->run_id(), {request->key()},
                         Timeout(*request), read);
}

GrpcStoreFront::Answer* GrpcStoreFront::Set(Context* context, const store::v1::SetRequest* request,
                                            store::v1::SetResponse*) {
  return AnswerWrite(Rpc::kStoreSet, *context, request->run_id(), [request](KeyValueStore& store) {
    return store.Set(request->key(), request->value());
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::Add(Context* context, const store::v1::AddRequest* request,
                                            store::v1::AddResponse* response) {
  return AnswerWrite(
      Rpc::kStoreAdd, *context, request->run_id(), [request, response](KeyValueStore& store) {
        const absl::StatusOr<std::int64_t> sum =
            store.Add(request->key(), request->delta(), KeyValueStore::Overflow::kRefused);
        if (sum.ok()) response->set_value(*sum);
        return sum.status();
      });
}

GrpcStoreFront::Answer* GrpcStoreFront::CompareSet(Context* context,
                                                   const store::v1::CompareSetRequest* request,
                                                   store::v1::CompareSetResponse* response) {
  return AnswerWrite(Rpc::kStoreCompareSet, *context, request->run_id(),
                     [request, response](KeyValueStore& store) {
                       auto outcome = store.CompareSet(request->key(), request->expected(),
                                                       request->desired());
                       if (!outcome.ok()) return outcome.status();
                       response->set_stored(outcome->stored);
                       response->set_value(std::move(outcome->value));
                       return absl::OkStatus();
                     });
}

GrpcStoreFront::Answer* GrpcStoreFront::Append(Context* context,
                                               const store::v1::AppendRequest* request,
                                               store::v1::AppendResponse*) {
  return AnswerWrite(
      Rpc::kStoreAppend, *context, request->run_id(),
      [request](KeyValueStore& store) { return store.Append(request->key(), request->suffix()); });
}

GrpcStoreFront::Answer* GrpcStoreFront::Delete(Context* context,
                                               const store::v1::DeleteRequest* request,
                                               store::v1::DeleteResponse* response) {
  return AnswerWrite(Rpc::kStoreDelete, *context, request->run_id(),
                     [request, response](KeyValueStore& store) {
                       response->set_deleted(store.Delete(request->key()));
                       return absl::OkStatus();
                     });
}

GrpcStoreFront::Answer* GrpcStoreFront::Check(Context* context,
                                              const store::v1::CheckRequest* request,
                                              store::v1::CheckResponse* response) {
  return AnswerAtOnce(Rpc::kStoreCheck, *context, request->run_id(),
                      [request, response](KeyValueStore& store) {
                        response->set_all_exist(store.Check(Views(request->keys())));
                        return absl::OkStatus();
                      });
}

GrpcStoreFront::Answer* GrpcStoreFront::Wait(Context* context,
                                             const store::v1::WaitRequest* request,
                                             store::v1::WaitResponse*) {
  return AnswerAfterWait(Rpc::kStoreWait, *context, request->run_id(), Views(request->keys()),
                         Timeout(*request), [](KeyValueStore&) { return absl::OkStatus(); });
}

GrpcStoreFront::Answer* GrpcStoreFront::Barrier(Context* context,
                                                const store::v1::BarrierRequest* request,
                                                store::v1::BarrierResponse*) {
  return LoopCall::Start(loop_, [this, request, context](std::shared_ptr<LoopCall> call) {
    Make(std::move(call), Rpc::kStoreBarrier, *context,
         {.run_id = request->run_id(),
          .body = [](KeyValueStore&) { return absl::OkStatus(); },
          .arrival = Arrival{.name = request->name(),
                             .count = request->count(),
                             .caller = request->caller(),
                             .deadline = Deadline(Timeout(*request))}});
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::NumKeys(Context* context,
                                                const store::v1::NumKeysRequest* request,
                                                store::v1::NumKeysResponse* response) {
  return AnswerAtOnce(Rpc::kStoreNumKeys, *context, request->run_id(),
                      [response](KeyValueStore& store) {
                        response->set_num_keys(store.NumKeys());
                        return absl::OkStatus();
                      });
}

GrpcStoreFront::Answer* GrpcStoreFront::MultiGet(Context* context,
                                                 const store::v1::MultiGetRequest* request,
                                                 store::v1::MultiGetResponse* response) {
  return AnswerAtOnce(
      Rpc::kStoreMultiGet, *context, request->run_id(), [request, response](KeyValueStore& store) {
        const std::vector<const std::string*> values = store.MultiGet(Views(request->keys()));
        // Summed before anything is copied: a small request may name a large value many times.
        std::size_t bytes = 0;
        for (const std::string* value : values) {
          bytes += kBytesPerValue + (value == nullptr ? 0 : value->size());
        }
        if (bytes > limits::kMessageBytes.most) {
          return absl::ResourceExhaustedError(
              absl::StrCat("multi-get: bytes of the answer would be ", bytes, ", the limit is ",
                           limits::kMessageBytes.most, ": ask for fewer keys at once"));
        }
        for (const std::string* value : values) {
          store::v1::MaybeValue* answer = response->add_values();
          if (value != nullptr) answer->set_value(*value);
        }
        return absl::OkStatus();
      });
}

GrpcStoreFront::Answer* GrpcStoreFront::MultiSet(Context* context,
                                                 const store::v1::MultiSetRequest* request,
                                                 store::v1::MultiSetResponse*) {
  return AnswerWrite(Rpc::kStoreMultiSet, *context, request->run_id(),
                     [request](KeyValueStore& store) {
                       std::vector<KeyValueStore::Entry> entries;
                       entries.reserve(request->entries_size());
                       for (const store::v1::KeyValue& entry : request->entries()) {
                         entries.emplace_back(entry.key(), entry.value());
                       }
                       return store.MultiSet(entries);
                     });
}

GrpcStoreFront::Answer* GrpcStoreFront::AnswerAtOnce(Rpc rpc, Context& context,
                                                     const std::string& run_id, Body body) {
  return LoopCall::Start(loop_, [this, rpc, &context, &run_id,
                                 body = std::move(body)](std::shared_ptr<LoopCall> call) {
    Make(std::move(call), rpc, context, {.run_id = run_id, .body = body});
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::AnswerWrite(Rpc rpc, Context& context,
                                                    const std::string& run_id, Body body) {
  return LoopCall::Start(loop_, [this, rpc, &context, &run_id,
                                 body = std::move(body)](std::shared_ptr<LoopCall> call) {
    Make(std::move(call), rpc, context, {.run_id = run_id, .body = body, .writes = true});
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::AnswerAfterWait(Rpc rpc, Context& context,
                                                        const std::string& run_id,
                                                        std::vector<std::string_view> keys,
                                                        std::optional<Duration> timeout,
                                                        Body body) {
  return LoopCall::Start(loop_, [this, rpc, &context, &run_id, keys = std::move(keys), timeout,
                                 body = std::move(body)](std::shared_ptr<LoopCall> call) {
    Make(std::move(call), rpc, context,
         {.run_id = run_id,
          .body = body,
          .wait = StoreCall::Wait{.keys = keys, .deadline = Deadline(timeout)}});
  });
}

absl::StatusOr<std::shared_ptr<void>> GrpcStoreFront::AdmitWait(const Context& context) {
  if (waiting_ >= limits::kWaitingCalls.most) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiting_, " calls wait already, which is the limit"));
  }
  std::shared_ptr<void> connection;
  if (admit_) {
    auto admitted = admit_(ParsePeer(context.peer()));
    if (!admitted.ok()) return admitted.status();
    connection = *std::move(admitted);
  }
  ++waiting_;
  return std::shared_ptr<void>(this, [this, connection](void*) { --waiting_; });
}

void GrpcStoreFront::Make(std::shared_ptr<LoopCall> call, Rpc rpc, const Context& context,
                          const StoreCall& what) {
  if (closed_) return call->Finish(absl::UnavailableError("the daemon is stopping"));
  const absl::StatusOr<Driver*> admitted = access_(rpc, context);
  if (!admitted.ok()) return call->Finish(admitted.status());
  Driver* const driver = *admitted;
  const CallId id =
      driver->Call(what, [this, call, driver](CallId answered, const absl::Status& status) {
        open_.erase({driver, answered});
        call->Finish(status);
      });
  if (call->finished()) return;
  Open open{.call = call, .admitted = nullptr};
  if (what.wait || what.arrival) {
    auto wait = AdmitWait(context);
    if (!wait.ok()) {
      driver->Cancel(id);
      return call->Finish(wait.status());
    }
    open.admitted = *std::move(wait);
  }
  // The client may go away in any state of the call, also while its answer waits for the disk.
  call->OnCancel([this, driver, id] {
    driver->Cancel(id);
    open_.erase({driver, id});
  });
  open_.emplace(OpenId(driver, id), std::move(open));
}

}  // namespace muster::rendezvous
