#include "rendezvous/fronts/tcpstore_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

// A string's length, and a list's.
constexpr std::size_t kNumberBytes = 8;
// Of one client. Only C++ programs for PyTorch before 2.1 watch keys at all.
constexpr std::size_t kMaxWatchedKeys = 1024;
// Of a WAIT, at once: 2 ms.
constexpr std::size_t kKeysAtOnce = 1024;

}  // namespace

absl::Status TcpStoreService::Apply(TcpStoreClient& client, const TcpStoreRequest& request) {
  if (request.legacy && !client.waits_.empty()) DropWaits(client);
  const absl::Status status = Do(client, request);
  Wake();
  return status;
}

absl::Status TcpStoreService::Do(TcpStoreClient& client, const TcpStoreRequest& request) {
  const auto& strings = request.strings;
  std::string& out = client.output;
  switch (request.op) {
    case TcpStoreOp::kValidate:
      return absl::OkStatus();
    case TcpStoreOp::kPing:
      AppendNonce(static_cast<std::uint32_t>(request.number), out);
      return absl::OkStatus();
    case TcpStoreOp::kSet: {
      const Before before = Look(strings[0]);
      absl::Status status = store_.Set(strings[0], strings[1]);
      if (status.ok()) Tell(strings[0], before);
      return status;
    }
    case TcpStoreOp::kCompareSet: {
      const Before before = Look(strings[0]);
      const auto outcome = store_.CompareSet(strings[0], strings[1], strings[2]);
      if (!outcome.ok()) return outcome.status();
      AppendString(outcome->value, out);
      if (outcome->stored) Tell(strings[0], before);
      return absl::OkStatus();
    }
    case TcpStoreOp::kGet: {
      // A key that is missing reads as empty: c10d's clients wait for it first.
      const std::string* value = store_.Get(strings[0]);
      AppendString(value == nullptr ? std::string_view() : *value, out);
      return absl::OkStatus();
    }
    case TcpStoreOp::kAdd: {
      const Before before = Look(strings[0]);
      const absl::StatusOr<std::int64_t> sum = store_.Add(strings[0], request.number);
      if (!sum.ok()) return sum.status();
      AppendNumber(*sum, out);
      Tell(strings[0], before);
      return absl::OkStatus();
    }
    case TcpStoreOp::kCheck:
      AppendByte(store_.Check(strings) ? kReady : kNotReady, out);
      return absl::OkStatus();
    case TcpStoreOp::kWait:
      client.begun_ = std::make_shared<TcpStoreClient::Wait>(&client);
      client.keys_ = strings;
      return Continue(client);
    case TcpStoreOp::kGetNumKeys:
      AppendNumber(static_cast<std::int64_t>(store_.NumKeys()), out);
      return absl::OkStatus();
    case TcpStoreOp::kDeleteKey: {
      const Before before = Look(strings[0]);
      const bool deleted = store_.Delete(strings[0]);
      AppendNumber(deleted ? 1 : 0, out);
      if (deleted) Tell(strings[0], before);
      return absl::OkStatus();
    }
    case TcpStoreOp::kAppend: {
      const Before before = Look(strings[0]);
      absl::Status status = store_.Append(strings[0], strings[1]);
      if (status.ok()) Tell(strings[0], before);
      return status;
    }
    case TcpStoreOp::kMultiGet:
      return DoMultiGet(client, request);
    case TcpStoreOp::kMultiSet:
      return DoMultiSet(request);
    case TcpStoreOp::kCancelWait:
      DropWaits(client);
      AppendByte(kWaitCancelled, out);
      return absl::OkStatus();
    case TcpStoreOp::kQueuePush:
      return store_.Push(strings[0], strings[1]);
    case TcpStoreOp::kQueuePop: {
      const KeyValueStore::PopOutcome popped = store_.Pop(strings[0]);
      AppendNumber(static_cast<std::int64_t>(popped.length), out);
      if (popped.length > 0) AppendString(popped.value, out);
      return absl::OkStatus();
    }
    case TcpStoreOp::kQueueLength:
      AppendNumber(static_cast<std::int64_t>(store_.QueueLength(strings[0])), out);
      return absl::OkStatus();
    case TcpStoreOp::kListKeys:
      return DoListKeys(client);
    case TcpStoreOp::kBarrier: {
      const Before before = Look(strings[0]);
      const auto waiter = store_.Barrier(strings[0], request.number);
      if (waiter.ok()) Tell(strings[0], before);
      const auto wait = std::make_shared<TcpStoreClient::Wait>(&client);
      if (absl::Status status = Park(wait, waiter); !status.ok()) return status;
      AnswerIfOver(*wait);
      return absl::OkStatus();
    }
    case TcpStoreOp::kWatchKey:
      return DoWatchKey(client, strings[0]);
  }
  return absl::InternalError("no such request");
}

absl::Status TcpStoreService::DoMultiGet(TcpStoreClient& client, const TcpStoreRequest& request) {
  const std::vector<const std::string*> values = store_.MultiGet(request.strings);
  // Summed before anything is copied: a small request may name a large value many times.
  std::size_t bytes = 0;
  for (const std::string* value : values) {
    bytes += kNumberBytes + (value == nullptr ? 0 : value->size());
  }
  if (absl::Status status = CheckReply(client, bytes); !status.ok()) return status;
  for (const std::string* value : values) {
    AppendString(value == nullptr ? std::string_view() : *value, client.output);
  }
  return absl::OkStatus();
}

absl::Status TcpStoreService::DoMultiSet(const TcpStoreRequest& request) {
  std::vector<KeyValueStore::Entry> entries;
  entries.reserve(request.strings.size() / 2);
  for (std::size_t i = 0; i + 1 < request.strings.size(); i += 2) {
    entries.emplace_back(request.strings[i], request.strings[i + 1]);
  }
  std::vector<Before> before;
  if (!watchers_.empty()) {
    for (const auto& [key, value] : entries) before.push_back(Look(key));
  }
  absl::Status status = store_.MultiSet(entries);
  if (!status.ok()) return status;
  for (std::size_t i = 0; i < before.size(); ++i) Tell(entries[i].first, before[i]);
  return absl::OkStatus();
}

absl::Status TcpStoreService::DoListKeys(TcpStoreClient& client) {
  const std::vector<std::string_view> keys = store_.Keys();
  std::size_t bytes = kNumberBytes;
  for (const std::string_view key : keys) bytes += kNumberBytes + key.size();
  if (absl::Status status = CheckReply(client, bytes); !status.ok()) return status;
  AppendNumber(static_cast<std::int64_t>(keys.size()), client.output);
  for (const std::string_view key : keys) AppendString(key, client.output);
  return absl::OkStatus();
}

absl::Status TcpStoreService::DoWatchKey(TcpStoreClient& client, std::string_view key) {
  std::vector<std::string>& watched = client.watched_;
  if (std::find(watched.begin(), watched.end(), key) == watched.end()) {
    if (watched.size() >= kMaxWatchedKeys) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a client may watch no more than ", kMaxWatchedKeys, " keys"));
    }
    watchers_[key].push_back(&client);
    watched.emplace_back(key);
  }
  AppendByte(kWatchRegistered, client.output);
  return absl::OkStatus();
}

absl::Status TcpStoreService::Continue(TcpStoreClient& client) {
  const auto part = client.keys_.first(std::min(kKeysAtOnce, client.keys_.size()));
  client.keys_ = client.keys_.subspan(part.size());
  const absl::Status status = Park(client.begun_, store_.Wait(part, std::nullopt));
  if (status.ok() && !client.keys_.empty()) return status;
  const std::shared_ptr<TcpStoreClient::Wait> wait = std::exchange(client.begun_, nullptr);
  client.keys_ = {};
  if (status.ok()) AnswerIfOver(*wait);
  return status;
}

absl::Status TcpStoreService::Park(const std::shared_ptr<TcpStoreClient::Wait>& wait,
                                   const absl::StatusOr<std::optional<WaiterId>>& waiter) {
  if (!waiter.ok()) return waiter.status();
  if (!waiter->has_value()) return absl::OkStatus();
  ++wait->parts;
  waiting_.emplace(**waiter, wait);
  wait->client->waits_.push_back(**waiter);
  return absl::OkStatus();
}

void TcpStoreService::AnswerIfOver(const TcpStoreClient::Wait& wait) {
  if (wait.parts == 0) AppendByte(kStopWaiting, wait.client->output);
}

void TcpStoreService::DropWaits(TcpStoreClient& client) {
  for (const WaiterId waiter : std::exchange(client.waits_, {})) {
    waiting_.erase(waiter);
    store_.CancelWait(waiter);
  }
}

void TcpStoreService::Wake() {
  for (const CompletedWait& completed : store_.TakeCompleted()) {
    const std::shared_ptr<TcpStoreClient::Wait> wait = waiting_.extract(completed.waiter).mapped();
    TcpStoreClient& client = *wait->client;
    std::erase(client.waits_, completed.waiter);
    --wait->parts;
    if (wait == client.begun_ || wait->parts > 0) continue;
    AnswerIfOver(*wait);
    client.OnPushed();
  }
}

absl::Status TcpStoreService::CheckReply(const TcpStoreClient& client, std::size_t bytes) const {
  if (client.output.size() + bytes <= output_limit_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a reply of ", bytes, " bytes is more than the limit of ", output_limit_bytes_, " allows"));
}

TcpStoreService::Before TcpStoreService::Look(std::string_view key) const {
  if (watchers_.empty() || !watchers_.contains(key)) return {};
  Before before{.watched = true};
  if (const std::string* value = store_.Get(key)) before.value = *value;
  return before;
}

void TcpStoreService::Tell(std::string_view key, const Before& before) {
  if (!before.watched) return;
  const std::string* now = store_.Get(key);
  std::uint8_t event = kKeyUpdated;
  if (!before.value) event = kKeyCreated;
  if (now == nullptr) event = kKeyDeleted;
  for (TcpStoreClient* client : watchers_.find(key)->second) {
    AppendByte(event, client->output);
    AppendString(key, client->output);
    AppendString(before.value ? *before.value : std::string_view(), client->output);
    AppendString(now == nullptr ? std::string_view() : *now, client->output);
    client->OnPushed();
  }
}

void TcpStoreService::Disconnect(TcpStoreClient& client) {
  DropWaits(client);
  client.begun_.reset();
  for (const std::string& key : std::exchange(client.watched_, {})) {
    const auto watchers = watchers_.find(key);
    std::erase(watchers->second, &client);
    if (watchers->second.empty()) watchers_.erase(watchers);
  }
}

}  // namespace muster::rendezvous
