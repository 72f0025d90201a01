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
  if (!time) return timer_.Cancel();
  timer_.After(std::max<Election::Duration>(*time - Now(), Election::Duration::zero()),
               std::move(ring));
}

}  // namespace muster::rendezvous::etcd
