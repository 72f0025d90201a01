// Waits for a condition in a test, with a deadline and without guessing how long things take.
#pragma once

#include <chrono>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

namespace muster::test {

// Far more than any test needs, even on the slowest machine. When it passes, the condition will
// never hold.
inline constexpr std::chrono::seconds kDeadline(60);

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

// The same for a test without a loop.
template <typename Condition>
[[nodiscard]] bool WaitUntil(Condition condition, std::chrono::milliseconds deadline = kDeadline) {
  boost::asio::io_context io;
  return RunUntil(io, std::move(condition), deadline);
}

}  // namespace muster::test
