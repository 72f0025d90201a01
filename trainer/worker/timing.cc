#include "trainer/worker/timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/failure.h"

namespace muster::trainer {
namespace {

constexpr std::array<const char*, kPhases> kNames = {"data", "forward", "backward", "optimizer",
                                                     "other"};

// The table's notes on phases.
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

namespace {

using WaitTime = std::chrono::steady_clock;

struct Waits {
  int scopes = 0;
  WaitTime::time_point since;
  std::chrono::nanoseconds ended{0};
};
thread_local Waits of_thread;
std::atomic<bool> any_listener = false;

}  // namespace

void CountWaits() {
  any_listener = true;
}

bool WaitsAreCounted() {
  return any_listener.load(std::memory_order_relaxed);
}

WaitScope::WaitScope() : counts_(WaitsAreCounted()) {
  if (counts_ && of_thread.scopes++ == 0) of_thread.since = WaitTime::now();
}

WaitScope::~WaitScope() {
  if (counts_ && --of_thread.scopes == 0) of_thread.ended += WaitTime::now() - of_thread.since;
}

std::chrono::nanoseconds WaitedByThread() {
  return of_thread.ended;
}

namespace {

// Names of operators are plain text; characters that JSON cannot contain become question marks.
std::string Plain(const std::string& name) {
  std::string plain = name;
  for (char& c : plain) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return plain;
}

absl::Status WriteFailure(const std::string& path) {
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write", path);
}

}  // namespace

void TraceBuffer::Add(TraceEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (events_.size() == capacity_) {
    ++dropped_;
  } else {
    events_.push_back(std::move(event));
  }
}

std::size_t TraceBuffer::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return events_.size();
}

std::size_t TraceBuffer::dropped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

absl::Status TraceBuffer::Write(const std::string& path, int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << absl::StrFormat(
      "[{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank %d\"}}", rank,
      rank);
  // Chrome's unit is the microsecond.
  for (const TraceEvent& event : events_) {
    file << absl::StrFormat(
        ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%d.%03d,\"dur\":%d.%03d}",
        rank, event.thread, Plain(event.name), event.start_ns / 1000, event.start_ns % 1000,
        event.duration_ns / 1000, event.duration_ns % 1000);
  }
  file << "\n";
  file.close();
  return file.good() ? absl::OkStatus() : WriteFailure(path);
}

std::string TracePart(const std::string& path, int rank) {
  return absl::StrCat(path, ".rank", rank);
}

absl::StatusOr<int> MergeTraceParts(const std::string& path, int world_size) {
  std::ofstream merged(path, std::ios::binary | std::ios::trunc);
  int found = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    const std::string part_path = TracePart(path, rank);
    std::ifstream part(part_path, std::ios::binary);
    if (!part) continue;
    // Each part begins an array; the merged file has one.
    part.get();
    merged << (found == 0 ? "[" : ",\n") << part.rdbuf();
    ++found;
  }
  merged << "]\n";
  merged.close();
  if (!merged.good()) return WriteFailure(path);
  std::error_code ignored;
  for (int rank = 0; rank < world_size; ++rank) {
    std::filesystem::remove(TracePart(path, rank), ignored);
  }
  return found;
}

void Cadence::OnAgreed(double seconds) {
  constexpr double kTarget = 0.25;  // seconds
  const std::int64_t most = 2 * interval_;
  // Also correct if `seconds` is 0 or NaN.
  interval_ = seconds * static_cast<double>(most) < kTarget
                  ? most
                  : std::max<std::int64_t>(1, static_cast<std::int64_t>(kTarget / seconds));
}

StepBeats::StepBeats(BeatSender& sender, const PhaseClock& phases, bool phases_are_told,
                     Clock::time_point now)
    : sender_(sender), phases_(phases), phases_are_told_(phases_are_told), since_(now) {
  if (sender_.sends()) CountWaits();
  // Time before the first step belongs to no step.
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
    // Differences of sums are inexact, and a duration must not be negative.
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
    // For a pipeline, or threads, in which forward and backward overlap.
    details.parts.push_back({"compute", of(Phase::kForward) + of(Phase::kBackward)});
  }
  details.parts.push_back({PhaseName(Phase::kOptimizer), of(Phase::kOptimizer)});
  details.parts.push_back({PhaseName(Phase::kOther), of(Phase::kOther)});
  details.parts.push_back({"wait", waited});
  return details;
}

}  // namespace muster::trainer
