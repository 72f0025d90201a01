#include "rendezvous/core/job/key_waits.h"

#include <iterator>

namespace muster::rendezvous {

void WaitList::Add(WaiterId waiter, std::span<const std::string_view> missing,
                   std::optional<TimePoint> deadline) {
  PendingWait wait;
  wait.deadline = deadline;
  for (const std::string_view key : missing) {
    const auto [id, is_new] = key_ids_.try_emplace(key, last_key_ + 1);
    if (is_new) {
      missing_keys_[++last_key_].key = key;
      bytes_ += key.size();
    }
    if (!missing_keys_[id->second].waiters.insert(waiter).second) continue;
    wait.keys.push_back(id->second);
    bytes_ += kBytesPerPair;
  }
  wait.missing = wait.keys.size();
  if (deadline) deadlines_.emplace(*deadline, waiter);
  waits_.emplace(waiter, std::move(wait));
}

bool WaitList::Cancel(WaiterId waiter) {
  const auto wait = waits_.find(waiter);
  if (wait == waits_.end()) return false;
  Remove(wait);
  return true;
}

void WaitList::KeyCreated(std::string_view key, std::vector<CompletedWait>& ended) {
  const auto id = key_ids_.find(key);
  if (id == key_ids_.end()) return;
  const MissingKey created = std::move(missing_keys_.extract(id->second).mapped());
  key_ids_.erase(id);
  bytes_ -= created.key.size() + created.waiters.size() * kBytesPerPair;

  for (const WaiterId waiter : created.waiters) {
    const auto wait = waits_.find(waiter);
    if (--wait->second.missing > 0) continue;
    Remove(wait);
    ended.push_back({waiter, WaitEnd::kReady});
  }
}

void WaitList::KeyPushed(std::string_view key, std::vector<CompletedWait>& ended) {
  const auto id = key_ids_.find(key);
  if (id == key_ids_.end()) return;
  for (const WaiterId waiter : missing_keys_.at(id->second).waiters) {
    const auto wait = waits_.find(waiter);
    if (wait->second.missing > 1) continue;
    Remove(wait);
    ended.push_back({waiter, WaitEnd::kReady});
    return;
  }
  KeyCreated(key, ended);
}

void WaitList::Tick(TimePoint now, std::vector<CompletedWait>& ended) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const WaiterId waiter = deadlines_.begin()->second;
    Remove(waits_.find(waiter));
    ended.push_back({waiter, WaitEnd::kTimedOut});
  }
}

std::optional<TimePoint> WaitList::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void WaitList::Remove(absl::flat_hash_map<WaiterId, PendingWait>::iterator wait) {
  const auto& [waiter, pending] = *wait;
  for (const KeyId id : pending.keys) {
    const auto missing = missing_keys_.find(id);
    if (missing == missing_keys_.end()) continue;  // seen
    missing->second.waiters.erase(waiter);
    bytes_ -= kBytesPerPair;
    if (!missing->second.waiters.empty()) continue;
    bytes_ -= missing->second.key.size();
    key_ids_.erase(missing->second.key);
    missing_keys_.erase(missing);
  }
  if (pending.deadline) deadlines_.erase(std::pair(*pending.deadline, waiter));
  waits_.erase(wait);
}

void BarrierList::Add(WaiterId waiter, std::string_view key, std::int64_t world_size) {
  barriers_[key].emplace(world_size, waiter);
  places_.emplace(waiter, Place{std::string(key), world_size});
  bytes_ += key.size() + kBytesPerWait;
}

bool BarrierList::Cancel(WaiterId waiter) {
  const auto place = places_.find(waiter);
  if (place == places_.end()) return false;
  const auto barrier = barriers_.find(place->second.key);
  barrier->second.erase({place->second.world_size, waiter});
  if (barrier->second.empty()) barriers_.erase(barrier);
  Forget(place);
  return true;
}

void BarrierList::Counted(std::string_view key, std::int64_t count,
                          std::vector<CompletedWait>& ended) {
  const auto barrier = barriers_.find(key);
  if (barrier == barriers_.end()) return;
  Parked& parked = barrier->second;
  while (!parked.empty() && parked.begin()->first <= count) {
    const WaiterId waiter = parked.begin()->second;
    parked.erase(parked.begin());
    Forget(places_.find(waiter));
    ended.push_back({waiter, WaitEnd::kReady});
  }
  if (parked.empty()) barriers_.erase(barrier);
}

void BarrierList::Forget(Places::iterator place) {
  bytes_ -= place->second.key.size() + kBytesPerWait;
  places_.erase(place);
}

std::uint64_t MeetingList::CountOf(std::string_view name) const {
  const auto meeting = meetings_.find(name);
  return meeting == meetings_.end() ? 0 : meeting->second.count;
}

bool MeetingList::Replace(const Arrival& arrival, std::vector<CompletedWait>& ended) {
  const auto meeting = meetings_.find(arrival.name);
  if (meeting == meetings_.end()) return false;
  const auto caller = meeting->second.callers.find(arrival.caller);
  if (caller == meeting->second.callers.end()) return false;
  const WaiterId waiter = caller->second;
  Remove(waits_.find(waiter));
  ended.push_back({waiter, WaitEnd::kReplaced});
  return true;
}

bool MeetingList::Completes(const Arrival& arrival, std::vector<CompletedWait>& ended) {
  const auto meeting = meetings_.find(arrival.name);
  if (meeting == meetings_.end()) return arrival.count == 1;
  if (meeting->second.waiters.size() + 1 < arrival.count) return false;
  for (const WaiterId waiter : meeting->second.waiters) {
    Forget(waits_.find(waiter));
    ended.push_back({waiter, WaitEnd::kReady});
  }
  meetings_.erase(meeting);
  return true;
}

void MeetingList::Add(WaiterId waiter, const Arrival& arrival) {
  Meeting& meeting = meetings_[arrival.name];
  meeting.count = arrival.count;
  meeting.waiters.insert(waiter);
  if (!arrival.caller.empty()) meeting.callers.try_emplace(arrival.caller, waiter);

  WaiterId since = waiter;
  while (!meeting.most.empty()) {
    const auto latest = std::prev(meeting.most.end());
    if (latest->second > meeting.waiters.size()) break;
    since = latest->first;
    meeting.most.erase(latest);
  }
  meeting.most.emplace(since, meeting.waiters.size());

  if (arrival.deadline) deadlines_.emplace(*arrival.deadline, waiter);
  bytes_ += Bytes(arrival);
  waits_.emplace(waiter, PendingWait{std::string(arrival.name), std::string(arrival.caller),
                                     arrival.deadline});
}

bool MeetingList::Cancel(WaiterId waiter) {
  const auto wait = waits_.find(waiter);
  if (wait == waits_.end()) return false;
  Remove(wait);
  return true;
}

void MeetingList::Tick(TimePoint now, std::vector<CompletedWait>& ended) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const WaiterId waiter = deadlines_.begin()->second;
    const auto wait = waits_.find(waiter);
    const auto& most = meetings_.find(wait->second.name)->second.most;
    ended.push_back({waiter, WaitEnd::kTimedOut, std::prev(most.upper_bound(waiter))->second});
    Remove(wait);
  }
}

std::optional<TimePoint> MeetingList::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void MeetingList::Forget(Waits::iterator wait) {
  const auto& [waiter, pending] = *wait;
  if (pending.deadline) deadlines_.erase({*pending.deadline, waiter});
  bytes_ -= Bytes({.name = pending.name, .caller = pending.caller});
  waits_.erase(wait);
}

void MeetingList::Remove(Waits::iterator wait) {
  const auto& [waiter, pending] = *wait;
  const auto meeting = meetings_.find(pending.name);
  meeting->second.waiters.erase(waiter);
  meeting->second.callers.erase(pending.caller);
  if (meeting->second.waiters.empty()) meetings_.erase(meeting);
  Forget(wait);
}

void KeyQueues::Push(std::string_view key, std::string_view value) {
  const auto [queue, is_new] = queues_.try_emplace(key);
  queue->second.emplace_back(value);
  bytes_ += (is_new ? key.size() : 0) + value.size() + kBytesPerValue;
}

std::optional<std::string> KeyQueues::Pop(std::string_view key) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return std::nullopt;
  std::string value = std::move(queue->second.front());
  queue->second.pop_front();
  bytes_ -= value.size() + kBytesPerValue;
  if (queue->second.empty()) {
    bytes_ -= queue->first.size();
    queues_.erase(queue);
  }
  return value;
}

std::size_t KeyQueues::Length(std::string_view key) const {
  const auto queue = queues_.find(key);
  return queue == queues_.end() ? 0 : queue->second.size();
}

}  // namespace muster::rendezvous
