// Waits for a condition in a test, with a deadline and without guessing how long things take.
#pragma once

#include <chrono>
#include <thread>

namespace muster::test {

// Far more than any test needs, even on the slowest machine. When it passes, the condition will
// never hold.
inline constexpr std::chrono::seconds kDeadline(60);

// Waits until `condition` holds; false if the deadline passes first. Evaluates it every few
// milliseconds.
template <typename Condition>
[[nodiscard]] bool WaitUntil(Condition condition, std::chrono::milliseconds deadline = kDeadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace muster::test
