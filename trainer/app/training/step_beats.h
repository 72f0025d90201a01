// What the launcher is told of each step.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "trainer/telemetry/phase_clock.h"
#include "trainer/worker/beat.h"

namespace muster::trainer {

// Makes a beat of each step: how many samples in how long a time, and how long each phase took.
// Waiting for other ranks, in whichever phase it was, is a part of its own, as else a rank that
// waits would look as slow as the one that it waits for. Where nobody listens it does nothing. One
// thread, that of the training.
class StepBeats {
 public:
  using Clock = PhaseClock::Clock;

  // From now on; both must outlive this. Without `phases_are_told` (work on a GPU goes on when the
  // thread has handed it over, and the thread waits wherever a number is read) the time behind the
  // data is one part, in which a rank may wait.
  StepBeats(BeatSender& sender, const PhaseClock& phases, bool phases_are_told,
            Clock::time_point now);

  // The ranks have agreed on the loss of a step: it goes with the next beat.
  void OnLoss(double loss) { loss_ = loss; }
  // This rank has completed `step`, with `samples` samples of its own.
  void OnStep(std::int64_t step, std::int64_t samples, Clock::time_point now);

 private:
  using Seconds = std::array<double, kPhases>;
  StepDetails Details(std::int64_t samples, double seconds);

  BeatSender& sender_;
  const PhaseClock& phases_;
  const bool phases_are_told_;
  // Until the last beat.
  Clock::time_point since_;
  Seconds own_{};
  Seconds waited_{};
  std::optional<double> loss_;
};

}  // namespace muster::trainer
