// What ran when, on every thread of every rank, as a file that chrome://tracing and Perfetto open.
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

// Collects events in memory. Any thread may add.
class TraceBuffer {
 public:
  // Keeps the first `capacity` events and counts the rest: a trace is for looking at some steps,
  // and must not eat the memory of a long run.
  explicit TraceBuffer(std::size_t capacity) : capacity_(capacity) {}

  void Add(TraceEvent event);

  std::size_t size() const;
  std::size_t dropped() const;

  // Writes the events to `path` in Chrome's JSON array format, rank `rank` as the process. The
  // closing bracket is left out, as the format allows, so that files can be put together by
  // appending them. kUnavailable when that fails.
  absl::Status Write(const std::string& path, int rank) const;

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::size_t dropped_ = 0;
};

// Where rank `rank` puts its part of the trace `path` until the parts are put together.
std::string TracePart(const std::string& path, int rank);

// Puts the parts of `world_size` ranks together into `path`, and removes them. Parts that are not
// here, because they were written on another host, stay out; the result is how many were there.
// kUnavailable when `path` cannot be written.
absl::StatusOr<int> MergeTraceParts(const std::string& path, int world_size);

}  // namespace muster::trainer
