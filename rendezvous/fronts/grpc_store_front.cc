#include "rendezvous/fronts/grpc_store_front.h"

#include "absl/strings/str_cat.h"
#include "rendezvous/core/names.h"

namespace muster::rendezvous {
namespace {

using google::protobuf::RepeatedPtrField;

// What a message may hold that a client with gRPC's default settings takes.
constexpr std::size_t kMaxMessageBytes = 4 << 20;
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

}  // namespace

GrpcStoreFront::GrpcStoreFront(boost::asio::io_context& loop, Driver& driver)
    : driver_(driver), loop_(loop), timer_(std::make_shared<boost::asio::steady_timer>(loop)) {}

void GrpcStoreFront::DropStore(std::string_view run_id) {
  const auto job = waiting_.find(run_id);
  if (job == waiting_.end()) return;
  const absl::Status status = absl::AbortedError(absl::StrCat("job '", job->first, "' has ended"));
  FailWaitingCalls(waiting_.extract(job), status);
}

void GrpcStoreFront::Close() {
  closed_ = true;
  timer_->cancel();
  while (!waiting_.empty()) {
    FailWaitingCalls(waiting_.extract(waiting_.begin()),
                     absl::UnavailableError("the daemon is stopping"));
  }
}

std::size_t GrpcStoreFront::NumWaitingCalls() const {
  std::size_t count = 0;
  for (const auto& [run_id, calls] : waiting_) count += calls.size();
  return count;
}

GrpcStoreFront::Answer* GrpcStoreFront::Get(Context*, const store::v1::GetRequest* request,
                                            store::v1::GetResponse* response) {
  const auto read = [request, response](KeyValueStore& store) {
    const std::string* value = store.Get(request->key());
    if (value == nullptr) {
      return absl::NotFoundError(absl::StrCat("get ", ShownKey(request->key()), ": no such key"));
    }
    response->set_value(*value);
    return absl::OkStatus();
  };
  if (!request->has_timeout_ms()) return AnswerAtOnce(request->run_id(), read);
  return AnswerAfterWait(request->run_id(), {request->key()}, Timeout(*request), read);
}

GrpcStoreFront::Answer* GrpcStoreFront::Set(Context*, const store::v1::SetRequest* request,
                                            store::v1::SetResponse*) {
  return AnswerWrite(request->run_id(), [request](KeyValueStore& store) {
    return store.Set(request->key(), request->value());
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::Add(Context*, const store::v1::AddRequest* request,
                                            store::v1::AddResponse* response) {
  return AnswerWrite(request->run_id(), [request, response](KeyValueStore& store) {
    const absl::StatusOr<std::int64_t> sum = store.Add(request->key(), request->delta());
    if (sum.ok()) response->set_value(*sum);
    return sum.status();
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::CompareSet(Context*,
                                                   const store::v1::CompareSetRequest* request,
                                                   store::v1::CompareSetResponse* response) {
  return AnswerWrite(request->run_id(), [request, response](KeyValueStore& store) {
    auto outcome = store.CompareSet(request->key(), request->expected(), request->desired());
    if (!outcome.ok()) return outcome.status();
    response->set_stored(outcome->stored);
    response->set_value(std::move(outcome->value));
    return absl::OkStatus();
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::Append(Context*, const store::v1::AppendRequest* request,
                                               store::v1::AppendResponse*) {
  return AnswerWrite(request->run_id(), [request](KeyValueStore& store) {
    return store.Append(request->key(), request->suffix());
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::Delete(Context*, const store::v1::DeleteRequest* request,
                                               store::v1::DeleteResponse* response) {
  return AnswerWrite(request->run_id(), [request, response](KeyValueStore& store) {
    response->set_deleted(store.Delete(request->key()));
    return absl::OkStatus();
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::Check(Context*, const store::v1::CheckRequest* request,
                                              store::v1::CheckResponse* response) {
  return AnswerAtOnce(request->run_id(), [request, response](KeyValueStore& store) {
    response->set_all_exist(store.Check(Views(request->keys())));
    return absl::OkStatus();
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::Wait(Context*, const store::v1::WaitRequest* request,
                                             store::v1::WaitResponse*) {
  return AnswerAfterWait(request->run_id(), Views(request->keys()), Timeout(*request),
                         [](KeyValueStore&) { return absl::OkStatus(); });
}

GrpcStoreFront::Answer* GrpcStoreFront::NumKeys(Context*, const store::v1::NumKeysRequest* request,
                                                store::v1::NumKeysResponse* response) {
  return AnswerAtOnce(request->run_id(), [response](KeyValueStore& store) {
    response->set_num_keys(store.NumKeys());
    return absl::OkStatus();
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::MultiGet(Context*,
                                                 const store::v1::MultiGetRequest* request,
                                                 store::v1::MultiGetResponse* response) {
  return AnswerAtOnce(request->run_id(), [request, response](KeyValueStore& store) {
    const std::vector<const std::string*> values = store.MultiGet(Views(request->keys()));
    // Summed before anything is copied: a small request may name a large value many times.
    std::size_t bytes = 0;
    for (const std::string* value : values) {
      bytes += kBytesPerValue + (value == nullptr ? 0 : value->size());
    }
    if (bytes > kMaxMessageBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("multi-get: bytes of the answer would be ",
                                                       bytes, ", the limit is ", kMaxMessageBytes,
                                                       ": ask for fewer keys at once"));
    }
    for (const std::string* value : values) {
      store::v1::MaybeValue* answer = response->add_values();
      if (value != nullptr) answer->set_value(*value);
    }
    return absl::OkStatus();
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::MultiSet(Context*,
                                                 const store::v1::MultiSetRequest* request,
                                                 store::v1::MultiSetResponse*) {
  return AnswerWrite(request->run_id(), [request](KeyValueStore& store) {
    std::vector<KeyValueStore::Entry> entries;
    entries.reserve(request->entries_size());
    for (const store::v1::KeyValue& entry : request->entries()) {
      entries.emplace_back(entry.key(), entry.value());
    }
    return store.MultiSet(entries);
  });
}

GrpcStoreFront::Answer* GrpcStoreFront::AnswerAtOnce(const std::string& run_id, Body body) {
  return LoopCall::Start(loop_,
                         [this, &run_id, body = std::move(body)](std::shared_ptr<LoopCall> call) {
                           const absl::StatusOr<KeyValueStore*> store = Find(run_id);
                           if (!store.ok()) return call->Finish(store.status());
                           absl::Status status = body(**store);
                           Settle(run_id, **store);
                           // The request may end here, and `run_id` with it.
                           FinishWhenDurable(std::move(call), std::move(status));
                         });
}

GrpcStoreFront::Answer* GrpcStoreFront::AnswerWrite(const std::string& run_id, Body body) {
  return AnswerAtOnce(run_id, [this, body = std::move(body)](KeyValueStore& store) {
    absl::Status may = driver_.MayWrite();
    return may.ok() ? body(store) : may;
  });
}

void GrpcStoreFront::FinishWhenDurable(std::shared_ptr<LoopCall> call, absl::Status status) {
  driver_.WhenDurable(
      [call = std::move(call), status = std::move(status)] { call->Finish(status); });
}

GrpcStoreFront::Answer* GrpcStoreFront::AnswerAfterWait(const std::string& run_id,
                                                        std::vector<std::string_view> keys,
                                                        std::optional<Duration> timeout,
                                                        Body body) {
  return LoopCall::Start(loop_, [this, &run_id, keys = std::move(keys), timeout,
                                 body = std::move(body)](std::shared_ptr<LoopCall> call) {
    const absl::StatusOr<KeyValueStore*> store = Find(run_id);
    if (!store.ok()) return call->Finish(store.status());
    std::optional<TimePoint> deadline;
    if (timeout) deadline = std::chrono::steady_clock::now() + *timeout;
    const absl::StatusOr<std::optional<WaiterId>> waiter = (*store)->Wait(keys, deadline);
    if (!waiter.ok()) return call->Finish(waiter.status());
    if (!waiter->has_value()) {
      absl::Status status = body(**store);
      return FinishWhenDurable(std::move(call), std::move(status));
    }

    call->OnCancel([this, run_id, waiter = **waiter] { CancelWait(run_id, waiter); });
    waiting_[run_id].emplace(**waiter, WaitingCall{std::move(call), body});
    Settle(run_id, **store);
  });
}

absl::StatusOr<KeyValueStore*> GrpcStoreFront::Find(const std::string& run_id) const {
  if (closed_) return absl::UnavailableError("the daemon is stopping");
  if (absl::Status status = CheckName("run id", run_id); !status.ok()) return status;
  KeyValueStore* store = driver_.FindStore(run_id);
  if (store == nullptr) return absl::NotFoundError(absl::StrCat("no job '", run_id, "' here"));
  return store;
}

void GrpcStoreFront::Settle(const std::string& run_id, KeyValueStore& store) {
  driver_.StoreChanged(run_id);
  for (const CompletedWait& completed : store.TakeCompleted()) {
    const auto job = waiting_.find(run_id);
    if (job == waiting_.end()) continue;
    const auto waiting = job->second.extract(completed.waiter);
    if (waiting.empty()) continue;  // not a wait of this front
    if (job->second.empty()) waiting_.erase(job);
    const auto& [call, body] = waiting.mapped();
    FinishWhenDurable(call, completed.end == WaitEnd::kReady
                                ? body(store)
                                : absl::DeadlineExceededError(
                                      "wait: not all of the keys came into existence in time"));
  }

  const std::optional<TimePoint> deadline = store.NextDeadline();
  if (!deadline || (timer_due_ && *timer_due_ <= *deadline)) return;
  timer_due_ = deadline;
  timer_->expires_at(*deadline);
  timer_->async_wait([this, alive = std::weak_ptr(timer_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) OnTimer();
  });
}

void GrpcStoreFront::FailWaitingCalls(JobCalls::node_type job, const absl::Status& status) {
  KeyValueStore* store = driver_.FindStore(job.key());
  for (const auto& [waiter, waiting] : job.mapped()) {
    waiting.call->Finish(status);
    if (store != nullptr) store->CancelWait(waiter);
  }
}

void GrpcStoreFront::CancelWait(const std::string& run_id, WaiterId waiter) {
  const auto job = waiting_.find(run_id);
  job->second.erase(waiter);
  if (job->second.empty()) waiting_.erase(job);
  if (KeyValueStore* store = driver_.FindStore(run_id)) store->CancelWait(waiter);
}

void GrpcStoreFront::OnTimer() {
  timer_due_.reset();
  std::vector<std::string> run_ids;
  for (const auto& [run_id, calls] : waiting_) run_ids.push_back(run_id);
  for (const std::string& run_id : run_ids) {
    KeyValueStore* store = driver_.FindStore(run_id);
    if (store == nullptr) {
      DropStore(run_id);
      continue;
    }
    store->Tick(std::chrono::steady_clock::now());
    Settle(run_id, *store);
  }
}

}  // namespace muster::rendezvous
