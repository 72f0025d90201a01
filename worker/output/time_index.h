// When which part of a stream came: for who wants to see what was written since a certain time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::worker {

// A point for each piece, but no more than one in `interval`, which grows so that there are never
// more than kMost (16 KiB). A tenth of a second at first; for a stream that never pauses, a five
// hundredth of its life or better from two minutes on. Between two points nothing is known of the
// time, and what came then counts as later: too much is shown rather than too little.
class TimeIndex {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMost = 1024;

  // Bytes came at `now`, which never goes back, and are at `offset`.
  void Add(Time now, std::uint64_t offset);

  // Where that begins which came at `time` or later; `end` if nothing did.
  std::uint64_t Find(Time time, std::uint64_t end) const;

  std::size_t size() const { return points_.size(); }
  std::chrono::milliseconds interval() const { return interval_; }

 private:
  // What is from `offset` to that of the next point came at `time` or less than interval_ later.
  struct Point {
    Time time;
    std::uint64_t offset = 0;
  };

  void Thin();

  std::vector<Point> points_;
  std::chrono::milliseconds interval_{100};
};

}  // namespace muster::worker
