// Work that is done in parts, between whatever else the loop has to do.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/lifetime.h"

namespace muster::rendezvous {

// One part in each turn of the loop, in the order in which they were handed in. So however many
// there are at a time, whatever else is due, such as keeping a lead alive, waits for one of them.
// Lives on the loop's thread; parts that have not come to their turn end with it.
class LaterTurns {
 public:
  explicit LaterTurns(boost::asio::io_context& io) : io_(io) {}

  // Calls `part` in a later turn. It may hand in others, and may destroy this.
  void Add(std::function<void()> part) {
    parts_.push_back(std::move(part));
    if (parts_.size() == 1) Post();
  }

 private:
  void Post() {
    boost::asio::post(io_, lifetime_.Guard([this] {
      const base::Lifetime::Watch watch = lifetime_.watch();
      // It stays in the queue meanwhile, so that what it hands in waits for the next turn.
      const std::function<void()> part = std::move(parts_.front());
      part();
      if (watch.over()) return;
      parts_.pop_front();
      if (!parts_.empty()) Post();
    }));
  }

  boost::asio::io_context& io_;
  std::deque<std::function<void()>> parts_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
