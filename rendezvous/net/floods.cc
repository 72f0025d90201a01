#include "rendezvous/net/floods.h"

#include <algorithm>

namespace muster::rendezvous {
namespace {

// Hosts that are counted, and hosts that are known.
constexpr std::size_t kMostHosts = 4096;

}  // namespace

bool Floods::Failed(const Host& host, TimePoint now) {
  if (known_.contains(host)) return false;
  // Those that were in the kernel's queue already.
  if (barred_.contains(host)) return false;
  Count& count = CountOf(host, now);
  const TimePoint next = count.pace.Next(now);
  count.forgotten_at =
      next + std::chrono::seconds(1) * limits_.at_once / std::max(limits_.in_a_second, 1);
  if (next <= now || barred_.size() >= limits_.barred) return false;
  barred_.emplace(host, now + limits_.rest);
  return true;
}

Floods::Count& Floods::CountOf(const Host& host, TimePoint now) {
  if (counts_.size() >= kMostHosts && !counts_.contains(host)) {
    std::erase_if(counts_, [now](const auto& count) { return count.second.forgotten_at <= now; });
    // So many hosts at once are each no flood.
    if (counts_.size() >= kMostHosts) counts_.clear();
  }
  return counts_.try_emplace(host, Count{Pace(limits_.in_a_second, limits_.at_once), now})
      .first->second;
}

bool Floods::Known(const Host& host) {
  if (!known_.insert(host).second) return false;
  known_in_order_.push_back(host);
  if (known_in_order_.size() > kMostHosts) {
    known_.erase(known_in_order_.front());
    known_in_order_.pop_front();
  }
  counts_.erase(host);
  return barred_.erase(host) > 0;
}

bool Floods::Release(TimePoint now) {
  return std::erase_if(barred_, [now](const auto& host) { return host.second <= now; }) > 0;
}

std::optional<TimePoint> Floods::next_release() const {
  if (barred_.empty()) return std::nullopt;
  return std::min_element(
             barred_.begin(), barred_.end(),
             [](const auto& one, const auto& other) { return one.second < other.second; })
      ->second;
}

}  // namespace muster::rendezvous
