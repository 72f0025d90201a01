// Traces of what ran when, on every thread of every rank, for chrome://tracing and Perfetto.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

struct TraceEvent {
  std::string name;
  std::uint64_t thread = 0;
  std::int64_t start_ns = 0;  // since the Unix epoch, so that ranks of one host line up
  std::int64_t duration_ns = 0;
};

// Collects events in memory. Thread-safe.
class TraceBuffer {
 public:
  // Keeps the first `capacity` events and only counts the rest: a trace is for looking at a few
  // steps, and must not use up the memory of a long run.
  explicit TraceBuffer(std::size_t capacity) : capacity_(capacity) {}

  void Add(TraceEvent event);

  std::size_t size() const;
  std::size_t dropped() const;

  // Writes the events to `path` in Chrome's JSON array format, with `rank` as the process. Leaves
  // out the closing bracket, as the format allows, so that parts can be concatenated. kUnavailable
  // when writing fails.
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

}  // namespace muster::trainer
