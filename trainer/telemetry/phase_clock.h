// Where the time of the training goes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace muster::trainer {

// The parts of a step, in their order.
enum class Phase { kData, kForward, kBackward, kOptimizer, kOther };
inline constexpr std::size_t kPhases = 5;

// "data", "forward", "backward", "optimizer", "other".
const char* PhaseName(Phase phase);

// Measures how long the training thread was in each phase. At every moment it is in exactly one, so
// that the phases add up to the whole. One thread; entering costs a reading of the clock, 25 ns.
class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  // In kOther, from `now` on.
  explicit PhaseClock(Clock::time_point now) : since_(now) {}

  // Ends the phase that lasted until `now`, and begins `phase`.
  void Enter(Phase phase, Clock::time_point now);

  Phase phase() const { return phase_; }
  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }

 private:
  Phase phase_ = Phase::kOther;
  Clock::time_point since_;
  std::array<double, kPhases> seconds_{};
};

// The phases as lines of a table: milliseconds of each step and share of the whole, ended by a line
// break each. `steps` must be above 0.
std::string FormatPhases(const PhaseClock& clock, std::int64_t steps);

}  // namespace muster::trainer
