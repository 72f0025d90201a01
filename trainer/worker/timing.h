// Where training time goes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/worker/launcher_link.h"

namespace muster::trainer {

// The parts of a step, in order.
enum class Phase { kData, kForward, kBackward, kOptimizer, kOther };
inline constexpr std::size_t kPhases = 5;

// "data", "forward", "backward", "optimizer", "other".
const char* PhaseName(Phase phase);

// Measures how long the training thread spends in each phase, and for how much of that it waits for
// other ranks. It is always in exactly one phase, so they add up to the total. One thread. Enter()
// costs one clock reading, 25 ns.
class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts in kOther at `now`. Here and below `waited` is the thread's total waiting time for other
  // ranks so far (WaitedByThread).
  explicit PhaseClock(Clock::time_point now, std::chrono::nanoseconds waited = {})
      : since_(now), waited_before_(waited) {}

  // Ends the current phase at `now` and begins `phase`.
  void Enter(Phase phase, Clock::time_point now, std::chrono::nanoseconds waited = {});

  Phase phase() const { return phase_; }
  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }
  // The waiting part of the phase's time.
  double waited_seconds(Phase phase) const { return waited_[static_cast<std::size_t>(phase)]; }

 private:
  Phase phase_ = Phase::kOther;
  Clock::time_point since_;
  std::chrono::nanoseconds waited_before_;
  std::array<double, kPhases> seconds_{};
  std::array<double, kPhases> waited_{};
};

// The phases as a table: milliseconds per step and share of the total, one line each. `steps` must
// be above 0.
std::string FormatPhases(const PhaseClock& clock, std::int64_t steps);

// Measures how long a thread has waited for other ranks.

// Enables counting in the whole process; until then scopes cost nothing. Any thread.
void CountWaits();
bool WaitsAreCounted();

// While an instance exists its thread counts as waiting: it is in an operation that needs other
// ranks, whose work and waiting cannot be separated. Nested ones count once. Destroy it on the
// thread that created it. Costs two clock readings, 50 ns.
class WaitScope {
 public:
  WaitScope();
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  const bool counts_;
};

// This thread's total waiting time in completed scopes. Excludes work that another thread waits for
// meanwhile, such as averaging gradients while more of them are computed.
std::chrono::nanoseconds WaitedByThread();

// Traces with the timing of every thread of every rank, for chrome://tracing and Perfetto.

struct TraceEvent {
  std::string name;
  std::uint64_t thread = 0;
  std::int64_t start_ns = 0;  // since the Unix epoch, so that ranks of one host line up
  std::int64_t duration_ns = 0;
};

// Collects events in memory. Thread-safe.
class TraceBuffer {
 public:
  // Keeps the first `capacity` events and only counts the rest: a trace is for examining a few
  // steps, and must not use up the memory of a long run.
  explicit TraceBuffer(std::size_t capacity) : capacity_(capacity) {}

  void Add(TraceEvent event);

  std::size_t size() const;
  std::size_t dropped() const;

  // Writes the events to `path` in Chrome's JSON array format, with `rank` as the process. Leaves
  // out the closing bracket, as the format allows, so that parts can be concatenated. kUnavailable
  // if writing fails.
  absl::Status Write(const std::string& path, int rank) const;

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::size_t dropped_ = 0;
};

// The file for rank `rank`'s part of the trace `path`, before MergeTraceParts().
std::string TracePart(const std::string& path, int rank);

// Merges the parts of `world_size` ranks into `path` and removes them. Skips parts that do not
// exist here because they were written on another host. Returns the number of parts found.
// kUnavailable when `path` cannot be written.
absl::StatusOr<int> MergeTraceParts(const std::string& path, int world_size);

// How many steps pass between the ranks' agreements.

// The ranks have to agree on whether one of them was told to stop, and on the losses that rank 0
// shows. Since an agreement costs as much as a small step, there are about four a second, not one
// in each step. The interval is computed from numbers that all ranks share, so it is the same on
// all of them.
class Cadence {
 public:
  // Steps from one agreement to the next. 1 at first, while the time of a step is unknown.
  std::int64_t interval() const { return interval_; }

  // Call it after each agreement. `seconds` is the mean time of a step since the last one, over all
  // ranks. The interval at most doubles, because the first steps can be unusual.
  void OnAgreed(double seconds);

 private:
  std::int64_t interval_ = 1;
};

// How long something has taken.

// Runs from its construction or last restart. One thread.
class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void Restart() { start_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now();
};

// Reports each step to the launcher.

// Sends a beat for each step: its number of samples, duration, and phases. Waiting for other ranks,
// in any phase, is reported as a separate part, as otherwise a rank that waits would look as slow
// as the one it waits for. Does nothing without a listener. One thread, that of the training.
class StepBeats {
 public:
  using Clock = PhaseClock::Clock;

  // Starts now; both must outlive this. Without `phases_are_told` (a GPU continues after the thread
  // has queued its work, and the thread waits wherever a number is read) all time after the data is
  // one part, in which a rank may wait.
  StepBeats(BeatSender& sender, const PhaseClock& phases, bool phases_are_told,
            Clock::time_point now);

  // The ranks have agreed on the loss of a step; the next beat includes it.
  void OnLoss(double loss) { loss_ = loss; }
  // This rank has completed `step`, with `samples` samples of its own.
  void OnStep(std::int64_t step, std::int64_t samples, Clock::time_point now);

 private:
  using Seconds = std::array<double, kPhases>;
  StepDetails Details(std::int64_t samples, double seconds);

  BeatSender& sender_;
  const PhaseClock& phases_;
  const bool phases_are_told_;
  // Time of the last beat.
  Clock::time_point since_;
  Seconds own_{};
  Seconds waited_{};
  std::optional<double> loss_;
};

}  // namespace muster::trainer
