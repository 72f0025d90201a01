// Waits for a condition in a test that has a loop.
#pragma once

#include <chrono>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "test/support/wait_until.h"

namespace muster::test {

// Runs the loop until `condition` holds; false if the deadline passes first. Evaluates the
// condition after every handler and, because it may depend on the outside world (/proc), every few
// milliseconds.
template <typename Condition>
[[nodiscard]] bool RunUntil(boost::asio::io_context& io, Condition condition,
                            std::chrono::milliseconds deadline = kDeadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  const auto stay = boost::asio::make_work_guard(io);
  io.restart();
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    io.run_one_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace muster::test
