#include "rendezvous/etcd/boot_time_alarm.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::rendezvous::etcd {

// Etcd's time goes on as well while this machine sleeps.
Election::TimePoint BootTimeAlarm::Now() const {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Election::TimePoint(std::chrono::seconds(now.tv_sec) +
                             std::chrono::nanoseconds(now.tv_nsec));
}

void BootTimeAlarm::Set(std::optional<Election::TimePoint> time, std::function<void()> ring) {
  const std::uint64_t set = ++set_;
  timer_.cancel();
  if (!time) return;
  timer_.expires_after(std::max<Election::Duration>(*time - Now(), Election::Duration::zero()));
  timer_.async_wait(
      lifetime_.Guard([this, set, ring = std::move(ring)](const boost::system::error_code& error) {
        if (!error && set == set_) ring();
      }));
}

}  // namespace muster::rendezvous::etcd
