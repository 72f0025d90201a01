#include "rendezvous/core/daemon_core.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/earliest.h"

namespace muster::rendezvous {

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

void DaemonCore::BeginToServe(TimePoint now) {
  coordinator_.BeginToServe(now);
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

void DaemonCore::Drain(const std::string& why) {
  coordinator_.Drain(why);
}

void DaemonCore::Close(const std::string& why, TimePoint now) {
  coordinator_.Close(why, now);
  Follow(now);
}

void DaemonCore::Call(CallId id, const StoreCall& call) {
  calls_.Call(id, call);
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
    delivery_.JobForgotten(run_id);
    calls_.DropStore(run_id);
  }
  for (const std::string& run_id : outbox.changed_jobs) delivery_.JobChanged(run_id);
  std::move(outbox.transitions.begin(), outbox.transitions.end(), std::back_inserter(log_));
  for (Outgoing& outgoing : outbox.directives) delivery_.Put(std::move(outgoing));
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
  // Whoever begins or ends to attend, the log says so; who comes back is welcomed.
  const bool any_came_back = !outbox.directives.empty() && logs_.AnyAwaitsAgents();
  if (!outbox.transitions.empty() || any_came_back) logs_.FollowAgents(now);
}

Batch DaemonCore::BeginCommit(TimePoint now) {
  const Changes& changes = delivery_.BeginCommit();
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
