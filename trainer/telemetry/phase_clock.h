// Where training time goes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace muster::trainer {

// The parts of a step, in order.
enum class Phase { kData, kForward, kBackward, kOptimizer, kOther };
inline constexpr std::size_t kPhases = 5;

// "data", "forward", "backward", "optimizer", "other".
const char* PhaseName(Phase phase);

// Measures how long the training thread spends in each phase, and how much of that it waits for
// other ranks. It is always in exactly one, so the phases add up to the total. One thread. Enter()
// costs the caller one clock reading, 25 ns.
class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts in kOther at `now`. Here and below `waited` is how long the thread has waited for other
  // ranks by then, in all (WaitedByThread).
  explicit PhaseClock(Clock::time_point now, std::chrono::nanoseconds waited = {})
      : since_(now), waited_before_(waited) {}

  // Ends the current phase at `now` and begins `phase`.
  void Enter(Phase phase, Clock::time_point now, std::chrono::nanoseconds waited = {});

  Phase phase() const { return phase_; }
  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }
  // What of that was waiting.
  double waited_seconds(Phase phase) const { return waited_[static_cast<std::size_t>(phase)]; }

 private:
  Phase phase_ = Phase::kOther;
  Clock::time_point since_;
  std::chrono::nanoseconds waited_before_;
  std::array<double, kPhases> seconds_{};
  std::array<double, kPhases> waited_{};
};

// The phases as a table: milliseconds per step and share of the total, one line each with a line
// break at its end. `steps` must be above 0.
std::string FormatPhases(const PhaseClock& clock, std::int64_t steps);

}  // namespace muster::trainer
