#include "rendezvous/core/store_calls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/earliest.h"
#include "rendezvous/core/limit_counts.h"
#include "rendezvous/core/names.h"

namespace muster::rendezvous {

void StoreCalls::Call(CallId id, const StoreCall& call) {
  const bool patient = call.wait || call.arrival;
  const absl::StatusOr<KeyValueStore*> found = Find(call.run_id);
  if (!found.ok()) return Answer(id, found.status(), patient);
  KeyValueStore& store = **found;
  if (call.writes && delivery_.full()) {
    return delivery_.PutAtOnce(StoreAnswer{
        id, absl::ResourceExhaustedError("the daemon's disk is full, and nothing can be written "
                                         "until there is space")});
  }
  const std::size_t bytes = BytesOf(call);
  if (waiting_bytes_ + bytes > most_waiting_bytes_) {
    return Answer(
        id,
        LimitRefusal(limits::kWaitingBytes,
                     absl::StrCat("bytes of what all waiting calls name would be ",
                                  waiting_bytes_ + bytes, ", the limit is ", most_waiting_bytes_)),
        patient);
  }
  absl::StatusOr<std::optional<WaiterId>> waiter = std::nullopt;
  if (call.wait) waiter = store.Wait(call.wait->keys, call.wait->deadline);
  if (call.arrival) waiter = store.Meet(*call.arrival);
  if (!waiter.ok()) return Answer(id, waiter.status(), patient);
  if (waiter->has_value()) {
    Waiting& waiting = waiting_[id];
    waiting = {.run_id = call.run_id, .waiter = **waiter, .body = call.body, .bytes = bytes};
    waiting_bytes_ += bytes;
    if (call.arrival) {
      waiting.barrier = call.arrival->name;
      waiting.count = call.arrival->count;
    }
    by_job_[call.run_id][**waiter] = id;
    return Settle(call.run_id, store);
  }
  absl::Status status = call.body(store);
  Settle(call.run_id, store);
  Answer(id, std::move(status), patient);
}

void StoreCalls::Cancel(CallId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;  // answered, or of an earlier store
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  Forget(waiting);
  const auto job = by_job_.find(waiting.run_id);
  job->second.erase(waiting.waiter);
  if (job->second.empty()) by_job_.erase(job);
  if (KeyValueStore* const store = coordinator_.FindStore(waiting.run_id)) {
    store->CancelWait(waiting.waiter);
  }
}

void StoreCalls::DropStore(const std::string& run_id) {
  const auto job = by_job_.extract(run_id);
  if (job.empty()) return;
  for (const auto& [waiter, id] : job.mapped()) {
    Forget(waiting_.extract(id).mapped());
    Answer(id, absl::AbortedError(absl::StrCat("job '", run_id, "' has ended")), true);
  }
}

void StoreCalls::Tick(TimePoint now) {
  std::vector<std::string> run_ids;
  for (const auto& [run_id, calls] : by_job_) run_ids.push_back(run_id);
  for (const std::string& run_id : run_ids) {
    KeyValueStore* const store = coordinator_.FindStore(run_id);
    store->Tick(now);
    Settle(run_id, *store);
  }
}

std::optional<TimePoint> StoreCalls::NextDeadline() const {
  std::optional<TimePoint> next;
  for (const auto& [run_id, calls] : by_job_) {
    next = base::Earliest(next, coordinator_.FindStore(run_id)->NextDeadline());
  }
  return next;
}

std::size_t StoreCalls::BytesOf(const StoreCall& call) {
  constexpr std::size_t kBesideKey = 64;
  std::size_t bytes = 0;
  if (call.wait) {
    for (const std::string_view key : call.wait->keys) bytes += key.size() + kBesideKey;
  }
  if (call.arrival) {
    bytes += call.arrival->name.size() + call.arrival->caller.size() + 2 * kBesideKey;
  }
  return bytes;
}

absl::StatusOr<KeyValueStore*> StoreCalls::Find(const std::string& run_id) const {
  if (absl::Status status = CheckName("run id", run_id); !status.ok()) return status;
  KeyValueStore* const store = coordinator_.FindStore(run_id);
  if (store == nullptr) return absl::NotFoundError(absl::StrCat("no job '", run_id, "' here"));
  if (delivery_.journaled()) store->TrackChanges();
  return store;
}

void StoreCalls::Settle(const std::string& run_id, KeyValueStore& store) {
  delivery_.StoreChanged(run_id, store.TakeChangedKeys());
  for (const CompletedWait& completed : store.TakeCompleted()) {
    const auto job = by_job_.find(run_id);
    if (job == by_job_.end()) continue;
    const auto entry = job->second.extract(completed.waiter);
    if (entry.empty()) continue;  // not a wait of these calls
    if (job->second.empty()) by_job_.erase(job);
    const CallId id = entry.mapped();
    const auto waiting = waiting_.extract(id);
    Forget(waiting.mapped());
    Answer(id, Outcome(waiting.mapped(), completed, store), true);
  }
}

absl::Status StoreCalls::Outcome(const Waiting& waiting, const CompletedWait& completed,
                                 KeyValueStore& store) {
  switch (completed.end) {
    case WaitEnd::kReady:
      return waiting.body(store);
    case WaitEnd::kTimedOut:
      if (waiting.count == 0) {
        return absl::DeadlineExceededError("wait: not all of the keys were set in time");
      }
      return absl::DeadlineExceededError(absl::StrCat(completed.reached, " of ", waiting.count,
                                                      " reached barrier ",
                                                      ShownKey(waiting.barrier)));
    case WaitEnd::kReplaced:
      return absl::AbortedError(
          absl::StrCat("barrier ", ShownKey(waiting.barrier), ": the same caller called again"));
  }
  return absl::InternalError("unknown end of a wait");
}

void StoreCalls::Answer(CallId id, absl::Status status, bool patient) {
  delivery_.Put(StoreAnswer{id, std::move(status), patient});
}

}  // namespace muster::rendezvous
