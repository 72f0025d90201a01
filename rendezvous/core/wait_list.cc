#include "rendezvous/core/wait_list.h"

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

}  // namespace muster::rendezvous
