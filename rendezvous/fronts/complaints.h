// A log of refusals that nobody can flood.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace muster::rendezvous {

// One line for each address and minute; what else comes from there is counted, and told with its
// next line. Of more than 1024 addresses at a time those that come last share one. Not thread-safe.
class Complaints {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Log = std::function<void(const std::string& line)>;

  explicit Complaints(Log log) : log_(std::move(log)) {}

  // Somebody at `address` was refused; `what` is said of it, "has no right to ...".
  void Add(const std::string& address, const std::string& what, TimePoint now);

  // Refusals since the beginning.
  std::uint64_t total() const { return total_; }

 private:
  struct Line {
    TimePoint said;
    std::uint64_t unsaid = 0;
  };

  const Log log_;
  std::map<std::string, Line> lines_;
  TimePoint swept_{};  // when those of minutes ago were forgotten
  std::uint64_t total_ = 0;
};

}  // namespace muster::rendezvous
