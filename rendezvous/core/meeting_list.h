// Those who wait until enough of them have come: what proto/store.proto calls a barrier.
//
// A meeting exists while somebody waits there. The first to come sets its count, which everybody
// else must name, too; the last one needed lets all the others go, and then the next meeting of
// that name may begin. Who stops waiting, for whatever reason, no longer counts.
//
// This has nothing to do with c10d's barrier (BarrierList), which counts in a key and never closes
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rendezvous/core/key_map.h"
#include "rendezvous/core/types.h"
#include "rendezvous/core/wait_list.h"

namespace muster::rendezvous {

// Somebody who comes to a meeting. The views are only read during the call they are given to.
struct Arrival {
  std::string_view name;  // of the meeting, any bytes
  std::uint64_t count = 0;
  // Tells the same caller, coming once more, from another one; empty: there is no telling.
  std::string_view caller;
  // Until when it waits; nullopt: without end.
  std::optional<TimePoint> deadline;
};

// Part of a KeyValueStore, which owns it and numbers the waits. Waits that end are added to
// `ended`, in the order in which they do.
class MeetingList {
 public:
  // What those who wait at the meeting expect; 0 when nobody does.
  std::uint64_t CountOf(std::string_view name) const;

  // If the same caller waits there already, ends that wait as kReplaced and returns true. Add
  // follows: as many are there as before.
  bool Replace(const Arrival& arrival, std::vector<CompletedWait>& ended);

  // If with this arrival, which names their count and is none of them, all are there: completes
  // their waits, in order of arrival, and returns true.
  bool Completes(const Arrival& arrival, std::vector<CompletedWait>& ended);

  // Adds a wait, with a number greater than any before, for an arrival that completes nothing.
  void Add(WaiterId waiter, const Arrival& arrival);

  // Ends a wait without completing it. False if it is not pending (any more).
  bool Cancel(WaiterId waiter);

  // Times out the waits whose deadline is at or before `now`, earliest deadline first. Each is told
  // the most that were there at once while it waited: of several that give up one after the other,
  // none is told less because another was a moment faster.
  void Tick(TimePoint now, std::vector<CompletedWait>& ended);

  // The earliest deadline of a pending wait.
  std::optional<TimePoint> NextDeadline() const;

  // Number of pending waits.
  std::size_t size() const { return waits_.size(); }

  // The memory of the pending waits: for each what Bytes says.
  std::size_t bytes() const { return bytes_; }
  static std::size_t Bytes(const Arrival& arrival) {
    return arrival.name.size() + arrival.caller.size() + kBytesPerWait;
  }
  static constexpr std::size_t kBytesPerWait = 128;

 private:
  struct Meeting {
    std::uint64_t count = 0;
    std::set<WaiterId> waiters;
    KeyMap<WaiterId> callers;  // of those that are known
    // The most that have been there at once since some waiter came, by that waiter. Each is less
    // than the one before it, and also holds for the waiters up to the next.
    std::map<WaiterId, std::uint64_t> most;
  };

  struct PendingWait {
    std::string name;
    std::string caller;
    std::optional<TimePoint> deadline;
  };

  using Waits = absl::flat_hash_map<WaiterId, PendingWait>;

  // Takes a wait out of everything but its meeting.
  void Forget(Waits::iterator wait);
  // Takes a wait out of everything. A meeting that nobody waits for is over.
  void Remove(Waits::iterator wait);

  KeyMap<Meeting> meetings_;
  Waits waits_;
  std::set<std::pair<TimePoint, WaiterId>> deadlines_;
  std::size_t bytes_ = 0;
};

}  // namespace muster::rendezvous
