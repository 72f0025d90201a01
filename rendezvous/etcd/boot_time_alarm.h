// This machine's clock that goes on while the machine sleeps, and a timer of the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "rendezvous/etcd/alarm.h"

namespace muster::rendezvous::etcd {

// Lives on the loop's thread; `io` must outlive it.
class BootTimeAlarm final : public Alarm {
 public:
  explicit BootTimeAlarm(boost::asio::io_context& io) : timer_(io) {}

  Election::TimePoint Now() const override;
  void Set(std::optional<Election::TimePoint> time, std::function<void()> ring) override;

 private:
  boost::asio::steady_timer timer_;
  std::uint64_t set_ = 0;  // how often it was
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous::etcd
