#include "rendezvous/core/daemon_core.h"

#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"

#include "base/durations.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {

void StoreCalls::Call(CallId id, const StoreCall& call) {
  const bool patient = call.wait || call.arrival;
  const absl::StatusOr<KeyValueStore*> found = Find(call.run_id);
  if (!found.ok()) return Answer(id, found.status(), patient);
  KeyValueStore& store = **found;
  if (call.writes && durable_outbox_.full()) {
    return durable_outbox_.PutAtOnce(StoreAnswer{
        id, absl::ResourceExhaustedError("the daemon's disk, or its etcd, is full; nothing can be "
                                         "written until there is space")});
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
    MUSTER_CHECK(by_job_[call.run_id].emplace(**waiter, id).second);
    return Settle(call.run_id, store);
  }
  absl::Status status = call.body(store);
  Settle(call.run_id, store);
  Answer(id, std::move(status), patient);
}

void StoreCalls::Cancel(CallId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;  // answered already, or from an earlier store
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  Forget(waiting);
  const auto job = by_job_.find(waiting.run_id);
  MUSTER_CHECK(job != by_job_.end() && job->second.erase(waiting.waiter) == 1);
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
    // Calls end with the store.
    MUSTER_CHECK(store != nullptr);
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
  if (store == nullptr) {
    // The outcome does not change with time.
    const std::optional<JobSnapshot> ended = coordinator_.Describe(run_id, TimePoint());
    return absl::NotFoundError(ended ? absl::StrCat("the job has ended: ", ended->sentence)
                                     : absl::StrCat("no job '", run_id, "' here"));
  }
  if (durable_outbox_.journaled()) store->TrackChanges();
  return store;
}

void StoreCalls::Settle(const std::string& run_id, KeyValueStore& store) {
  durable_outbox_.StoreChanged(run_id, store.TakeChangedKeys());
  for (const CompletedWait& completed : store.TakeCompleted()) {
    const auto job = by_job_.find(run_id);
    if (job == by_job_.end()) continue;
    const auto entry = job->second.extract(completed.waiter);
    if (entry.empty()) continue;  // not a wait of these calls
    if (job->second.empty()) by_job_.erase(job);
    const CallId id = entry.mapped();
    const auto waiting = waiting_.extract(id);
    MUSTER_CHECK(!waiting.empty());
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

bool DaemonCore::Restore(const JobRecord& job, TimePoint now) {
  const bool restored = coordinator_.Restore(job, now);
  Follow(now);
  return restored;
}

void DaemonCore::RestoreEntry(std::string_view run_id, std::string_view key,
                              std::string_view value) {
  KeyValueStore* const store = coordinator_.FindStore(run_id);
  if (store != nullptr) store->Set(key, value).IgnoreError();
}

void DaemonCore::Hear(AgentId agent, const Event& event, TimePoint now) {
  coordinator_.Hear(agent, event, now);
  Follow(now);
}

void DaemonCore::Disconnected(AgentId agent, const std::string& why, TimePoint now) {
  coordinator_.Disconnected(agent, why, now);
  Follow(now);
}

void DaemonCore::AgentDied(const SessionToken& session, TimePoint now) {
  coordinator_.AgentDied(session, now);
  Follow(now);
}

void DaemonCore::Close(const std::string& why, TimePoint now) {
  coordinator_.Close(why, now);
  Follow(now);
}

void DaemonCore::Tick(TimePoint now) {
  calls_.Tick(now);
  coordinator_.Tick(now);
  logs_.Tick(now);
  Follow(now);
}

std::optional<TimePoint> DaemonCore::NextDeadline() const {
  return base::Earliest(base::Earliest(coordinator_.NextDeadline(), calls_.NextDeadline()),
                        logs_.NextDeadline());
}

void DaemonCore::Follow(TimePoint now) {
  Outbox outbox = coordinator_.TakeOutbox();
  FollowLogs(outbox, now);
  for (const std::string& run_id : outbox.forgotten_jobs) {
    durable_outbox_.JobForgotten(run_id);
    calls_.DropStore(run_id);
  }
  for (const std::string& run_id : outbox.changed_jobs) durable_outbox_.JobChanged(run_id);
  std::move(outbox.transitions.begin(), outbox.transitions.end(), std::back_inserter(log_));
  for (Outgoing& outgoing : outbox.directives) durable_outbox_.Put(std::move(outgoing));
}

void DaemonCore::FollowLogs(const Outbox& outbox, TimePoint now) {
  if (logs_.readers() == 0) return;
  std::set<std::string> changed(outbox.forgotten_jobs.begin(), outbox.forgotten_jobs.end());
  for (const Transition& transition : outbox.transitions) {
    if (std::holds_alternative<RoundStarted>(transition.milestone) ||
        std::holds_alternative<JobEnded>(transition.milestone)) {
      changed.insert(transition.run_id);
    }
  }
  for (const std::string& run_id : changed) logs_.Follow(run_id, now);
  // Whenever an agent begins or ends to attend there is a transition for the log, and an agent that
  // comes back gets a Welcome.
  const bool any_came_back = !outbox.directives.empty() && logs_.AnyAwaitsAgents();
  if (!outbox.transitions.empty() || any_came_back) logs_.FollowAgents(now);
}

Batch DaemonCore::BeginCommit(TimePoint now) {
  const Changes& changes = durable_outbox_.BeginCommit();
  Batch batch;
  for (const std::string& run_id : changes.forgotten) batch.jobs.push_back({run_id, std::nullopt});
  for (const std::string& run_id : changes.jobs) {
    std::optional<JobRecord> record = coordinator_.Record(run_id, now);
    if (record) batch.jobs.push_back({run_id, std::move(record)});
  }
  for (const auto& [run_id, keys] : changes.keys) {
    const KeyValueStore* const store = coordinator_.FindStore(run_id);
    if (store == nullptr) continue;
    for (const std::string& key : keys) {
      const std::string* const value = store->Get(key);
      batch.entries.push_back(
          {run_id, key, value == nullptr ? std::nullopt : std::optional(*value)});
    }
  }
  return batch;
}

}  // namespace muster::rendezvous
