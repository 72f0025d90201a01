// This machine's clock that goes on while the machine sleeps, and a timer of the loop.
#pragma once

#include <functional>
#include <optional>

#include <boost/asio/io_context.hpp>

#include "base/async/timer.h"
#include "rendezvous/etcd/election.h"

namespace muster::rendezvous::etcd {

// Lives on the loop's thread; `io` must outlive it.
class BootTimeAlarm final : public Alarm {
 public:
  explicit BootTimeAlarm(boost::asio::io_context& io) : timer_(io) {}

  Election::TimePoint Now() const override;
  void Set(std::optional<Election::TimePoint> time, std::function<void()> ring) override;

 private:
  base::Timer timer_;
};

}  // namespace muster::rendezvous::etcd
