// What there still is of an output stream that a worker has written: its log file, or its last
// bytes in memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/output/time_index.h"

namespace muster::worker {

// An Output tells it what has come; whoever reads it asks by offsets, which count the stream's
// bytes from 0. A stream with a log file is there as a whole, as long as the file is. Of another
// one the last kKept bytes are there, if they pass through the agent at all. Outlives its Output.
// Lives on the loop's thread; reading a file may wait for its disk, as writing it may.
class StreamLog {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kKept = 64 * 1024;
  // As far as is looked back for lines.
  static constexpr std::size_t kLookBack = 4 * 1024 * 1024;

  // `file` is OutputSpec::file, which is new and empty; empty: none.
  explicit StreamLog(std::string file) : file_(std::move(file)) {}
  StreamLog(const StreamLog&) = delete;
  StreamLog& operator=(const StreamLog&) = delete;

  // For the Output. These bytes have come, of which the file has taken the first `in_file`.
  void Append(std::string_view bytes, std::size_t in_file, Time now);
  // The worker writes to the agent's own stream, or to /dev/null: nothing comes by here.
  enum class Way { kHere, kConsole, kNowhere };
  void Bypass(Way way) { way_ = way; }
  // Nothing more comes.
  void End();

  // Lets go of what is in memory.
  void Forget();

  Way way() const { return way_; }
  bool has_file() const { return !file_.empty(); }
  bool ended() const { return ended_; }
  // What is there is from begin() to end().
  std::uint64_t begin() const { return end_ - (has_file() ? end_ : kept_.size()); }
  std::uint64_t end() const { return end_; }

  // At least one byte, from `offset`, which is there; at most `most`. The error has the file's name
  // and the cause.
  absl::StatusOr<std::string> Read(std::uint64_t offset, std::size_t most) const;
  // Where the line begins in which something was written at `time` or later (TimeIndex).
  std::uint64_t FindTime(Time time) const;
  // Where the last `lines` lines begin, or as many of them as are in the last kLookBack bytes.
  std::uint64_t FindTail(int lines) const;

  // Calls `call` whenever more has come, and when nothing more does, as long as the result is held.
  // From within Append and End: it must not do more than note that.
  using Watch = std::shared_ptr<const std::function<void()>>;
  Watch WatchNews(std::function<void()> call);

 private:
  void TellNews();
  // Up to `most` bytes before `offset`; fewer, and possibly none, where no more are there.
  std::string Before(std::uint64_t offset, std::size_t most) const;

  const std::string file_;
  Way way_ = Way::kHere;
  bool ended_ = false;
  std::uint64_t end_ = 0;
  std::string kept_;  // the last bytes, where there is no file
  TimeIndex index_;
  std::vector<std::weak_ptr<const std::function<void()>>> watches_;
};

}  // namespace muster::worker
