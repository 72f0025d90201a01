#include "rendezvous/core/barrier_list.h"

namespace muster::rendezvous {

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

}  // namespace muster::rendezvous
