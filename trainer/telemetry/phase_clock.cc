#include "trainer/telemetry/phase_clock.h"

#include "absl/strings/str_format.h"

namespace muster::trainer {
namespace {

constexpr std::array<const char*, kPhases> kNames = {"data", "forward", "backward", "optimizer",
                                                     "other"};

// What the table says of a phase that is more than its name.
constexpr std::array<const char*, kPhases> kNotes = {
    "", "", " (with the communication that it does not hide)", "",
    " (reports, evaluation, checkpoints)"};

}  // namespace

const char* PhaseName(Phase phase) {
  return kNames[static_cast<std::size_t>(phase)];
}

void PhaseClock::Enter(Phase phase, Clock::time_point now, std::chrono::nanoseconds waited) {
  const auto ended = static_cast<std::size_t>(phase_);
  seconds_[ended] += std::chrono::duration<double>(now - since_).count();
  waited_[ended] += std::chrono::duration<double>(waited - waited_before_).count();
  waited_before_ = waited;
  phase_ = phase;
  since_ = now;
}

std::string FormatPhases(const PhaseClock& clock, std::int64_t steps) {
  double all = 0;
  for (std::size_t i = 0; i < kPhases; ++i) all += clock.seconds(static_cast<Phase>(i));
  std::string table = "phase         ms/step   share\n";
  for (std::size_t i = 0; i < kPhases; ++i) {
    const double seconds = clock.seconds(static_cast<Phase>(i));
    absl::StrAppendFormat(&table, "%-11s  %8.3f  %5.1f %%%s\n", kNames[i],
                          seconds * 1e3 / static_cast<double>(steps),
                          all > 0 ? seconds / all * 100 : 0, kNotes[i]);
  }
  return table;
}

}  // namespace muster::trainer
