// The prefix of each line of a worker.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace muster::worker {

class LinePrefix {
 public:
  using Time = std::chrono::system_clock::time_point;

  // `text` as in OutputSpec::prefix: ${pid} becomes `pid`, ${time} is filled in line by line, other
  // dollar signs are kept.
  LinePrefix(const std::string& text, pid_t pid);

  // The prefix of a line that ended at `now`.
  std::string At(Time now) const;

 private:
  std::string text_;
  // Whether ${time} is in it.
  bool has_time_ = false;
};

// Local time as "15:04:05.123".
std::string ClockTime(LinePrefix::Time time);

}  // namespace muster::worker
