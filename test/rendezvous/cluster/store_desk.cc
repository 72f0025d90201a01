#include "test/rendezvous/cluster/store_desk.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace muster::rendezvous {

void StoreDesk::Serve(ConnectionId connection, const StoreRequest& request) {
  const CallId id = ++last_call_;
  calls_[id] = {connection, request, {.number = request.number}, ""};
  const bool waits = request.operation == StoreOperation::kWait;
  StoreCall call{.run_id = request.run_id,
                 .body = [this, id](KeyValueStore& store) { return Do(calls_.at(id), store); },
                 .writes = !waits && request.operation != StoreOperation::kGet};
  if (waits) {
    call.wait = {.keys = {request.key}};
    if (request.wait_for) call.wait->deadline = clock_.Now() + *request.wait_for;
  }
  core_.Call(id, call);
  if (cancelled_early_.erase({connection, request.number}) > 0) {
    world_.incidents.Count(Incident::kCancelledBeforeItCame);
    core_.Cancel(id);
    calls_.erase(id);
  }
}

void StoreDesk::Cancel(ConnectionId connection, std::uint64_t number) {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& call) {
    return call.second.connection == connection && call.second.request.number == number;
  });
  if (found == calls_.end()) {
    // It has been answered, or is on its way.
    cancelled_early_.emplace(connection, number);
    return;
  }
  const std::size_t waiting = core_.waiting_calls();
  core_.Cancel(found->first);
  const bool waited = core_.waiting_calls() < waiting;
  world_.incidents.Count(waited ? Incident::kWaitCancelled : Incident::kHeldCallCancelled);
  calls_.erase(found);
}

void StoreDesk::Closed(ConnectionId connection) {
  std::vector<CallId> cancelled;
  for (const auto& [id, call] : calls_) {
    if (call.connection == connection) cancelled.push_back(id);
  }
  for (const CallId id : cancelled) {
    core_.Cancel(id);
    calls_.erase(id);
  }
}

absl::Status StoreDesk::Do(OpenCall& call, KeyValueStore& store) {
  const StoreRequest& request = call.request;
  StoreReply& reply = call.reply;
  absl::Status status;
  switch (request.operation) {
    case StoreOperation::kSet:
      status = store.Set(request.key, request.value);
      break;
    case StoreOperation::kAdd:
      if (const auto sum = store.Add(request.key, 1); sum.ok()) reply.value = absl::StrCat(*sum);
      break;
    case StoreOperation::kCompareSet:
      if (const auto outcome = store.CompareSet(request.key, request.expected, request.value);
          outcome.ok()) {
        reply.stored = outcome->stored;
        reply.value = outcome->value;
      }
      break;
    case StoreOperation::kAppend:
      status = store.Append(request.key, request.value);
      break;
    case StoreOperation::kGet:
    case StoreOperation::kWait:
      if (const std::string* value = store.Get(request.key)) reply.value = *value;
      break;
  }
  reply.incarnation = core_.coordinator().Record(request.run_id, clock_.Now())->incarnation;
  if (const std::string* const value = store.Get(request.key)) call.value = *value;
  return status;
}

void StoreDesk::Tell(const StoreAnswer& answer) {
  const auto found = calls_.extract(answer.call);
  if (found.empty()) return;  // cancelled
  OpenCall& call = found.mapped();
  call.reply.done = answer.status.ok();
  call.reply.unknown = absl::IsUnavailable(answer.status);
  if (core_.durable_outbox().journaled() && call.reply.done) {
    const StoreRequest& request = call.request;
    std::optional<JobRecord> now = core_.coordinator().Record(request.run_id, clock_.Now());
    if (now && now->attendees.empty() && now->verdict) now.reset();
    world_.checks.durability.OnAcknowledged(request.run_id, call.reply.incarnation, now,
                                            request.key, call.value);
  }
  world_.network.Tell(call.connection, call.reply);
}

}  // namespace muster::rendezvous
