#include "rendezvous/core/meeting_list.h"

#include <iterator>

namespace muster::rendezvous {

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

}  // namespace muster::rendezvous
