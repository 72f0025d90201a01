// The Alarm of a Candidate on a simulated machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "rendezvous/etcd/election.h"
#include "test/rendezvous/simulation/process.h"
#include "test/rendezvous/simulation/sim_clock.h"

namespace muster::rendezvous {

// Rings in the process, by the clock, which must outlive it.
class SimAlarm final : public etcd::Alarm {
 public:
  SimAlarm(std::shared_ptr<Process> process, const SimClock& clock)
      : process_(std::move(process)), clock_(clock) {}

  etcd::Election::TimePoint Now() const override { return clock_.Now(); }
  void Set(std::optional<etcd::Election::TimePoint> time, std::function<void()> ring) override {
    const std::uint64_t set = ++*set_;
    if (!time) return;
    process_->After(clock_.Until(*time), [last = std::weak_ptr(set_), set, ring = std::move(ring)] {
      if (const auto still = last.lock(); still != nullptr && *still == set) ring();
    });
  }

 private:
  const std::shared_ptr<Process> process_;
  const SimClock& clock_;
  // How often it was set; gone with this.
  const std::shared_ptr<std::uint64_t> set_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace muster::rendezvous
