#include "trainer/app/training/step_beats.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "trainer/comm/wait_clock.h"

namespace muster::trainer {

StepBeats::StepBeats(BeatSender& sender, const PhaseClock& phases, bool phases_are_told,
                     Clock::time_point now)
    : sender_(sender), phases_(phases), phases_are_told_(phases_are_told), since_(now) {
  if (sender_.sends()) CountWaits();
  // What was before is nobody's step.
  Details(0, 0);
}

void StepBeats::OnStep(std::int64_t step, std::int64_t samples, Clock::time_point now) {
  if (!sender_.sends()) return;
  const double seconds = std::chrono::duration<double>(now - std::exchange(since_, now)).count();
  StepDetails details = Details(samples, seconds);
  details.loss = std::exchange(loss_, std::nullopt);
  sender_.Send(step, details);
}

StepDetails StepBeats::Details(std::int64_t samples, double seconds) {
  Seconds own{};
  double waited = 0;
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    const double waited_so_far = phases_.waited_seconds(phase);
    const double own_so_far = phases_.seconds(phase) - waited_so_far;
    // Differences of sums are not exact, and less than nothing is no duration.
    own[i] = std::max(own_so_far - std::exchange(own_[i], own_so_far), 0.0);
    waited += std::max(waited_so_far - std::exchange(waited_[i], waited_so_far), 0.0);
  }
  StepDetails details;
  if (seconds > 0) details.samples_per_second = static_cast<double>(samples) / seconds;
  const auto of = [&own](Phase phase) { return own[static_cast<std::size_t>(phase)]; };
  details.parts = {{PhaseName(Phase::kData), of(Phase::kData)}};
  if (!phases_are_told_) {
    details.parts.push_back({"wait_step", std::max(seconds - of(Phase::kData), 0.0)});
    return details;
  }
  if (of(Phase::kForward) > 0 && of(Phase::kBackward) > 0) {
    details.parts.push_back({PhaseName(Phase::kForward), of(Phase::kForward)});
    details.parts.push_back({PhaseName(Phase::kBackward), of(Phase::kBackward)});
  } else {
    // A pipeline, or threads, in which the one is not before the other.
    details.parts.push_back({"compute", of(Phase::kForward) + of(Phase::kBackward)});
  }
  details.parts.push_back({PhaseName(Phase::kOptimizer), of(Phase::kOptimizer)});
  details.parts.push_back({PhaseName(Phase::kOther), of(Phase::kOther)});
  details.parts.push_back({"wait", waited});
  return details;
}

}  // namespace muster::trainer
