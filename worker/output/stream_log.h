// The readable part of a worker's output stream: its log file, or the last bytes in memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"

namespace muster::worker {

// When each part of a stream arrived, to find what was written since a given time.

// One point per piece, at most one per `interval`, which grows to keep at most kMost points (16
// KiB). It starts at a tenth of a second; for a stream that never pauses it is at most 1/500 of its
// life from two minutes on. Bytes between two points count as later, so a query returns too much
// rather than too little.
class TimeIndex {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMost = 1024;

  // Bytes arrived at `now`, which never decreases, and start at `offset`.
  void Add(Time now, std::uint64_t offset);

  // The offset of the first bytes that arrived at `time` or later; `end` if there are none.
  std::uint64_t Find(Time time, std::uint64_t end) const;

  std::size_t size() const { return points_.size(); }
  std::chrono::milliseconds interval() const { return interval_; }

 private:
  // Bytes from `offset` to the next point arrived at `time` or less than interval_ later.
  struct Point {
    Time time;
    std::uint64_t offset = 0;
  };

  void Thin();

  std::vector<Point> points_;
  std::chrono::milliseconds interval_{100};
};

// An Output appends what has arrived; readers use offsets, which count the stream's bytes from 0.
// With a log file the whole stream is available while the file exists. Otherwise the last kKept
// bytes are, if they pass through the agent at all. Outlives its Output. Lives on the loop's
// thread; reading a file may block on its disk, as writing may.
class StreamLog {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kKept = 64 * 1024;
  // How far to search backwards for lines.
  static constexpr std::size_t kLookBack = 4 * 1024 * 1024;

  // `file` is OutputSpec::file, new and empty; "": none.
  explicit StreamLog(std::string file) : file_(std::move(file)) {}
  StreamLog(const StreamLog&) = delete;
  StreamLog& operator=(const StreamLog&) = delete;

  // For the Output: `bytes` arrived, and the file accepted the first `in_file` of them.
  void Append(std::string_view bytes, std::size_t in_file, Time now);
  // kConsole, kNowhere: the worker writes directly to the agent's stream or to /dev/null; nothing
  // passes through here.
  enum class Way { kHere, kConsole, kNowhere };
  void Bypass(Way way) { way_ = way; }
  // The stream has ended.
  void End();

  // Frees the bytes in memory.
  void Forget();

  Way way() const { return way_; }
  bool has_file() const { return !file_.empty(); }
  bool ended() const { return ended_; }
  // The available range.
  std::uint64_t begin() const { return end_ - (has_file() ? end_ : kept_.size()); }
  std::uint64_t end() const { return end_; }

  // Reads at least one byte and at most `most` from `offset`, which must be available. An error has
  // the file's name and the cause.
  absl::StatusOr<std::string> Read(std::uint64_t offset, std::size_t most) const;
  // The start of the line that was written to at `time` or later (TimeIndex).
  std::uint64_t FindTime(Time time) const;
  // The start of the last `lines` lines, or of those within the last kLookBack bytes.
  std::uint64_t FindTail(int lines) const;

  // Calls `call` when more bytes arrive and when the stream ends, as long as the result is held. It
  // runs inside Append() and End() and may only take note.
  using Watch = std::shared_ptr<const std::function<void()>>;
  Watch WatchNews(std::function<void()> call);

 private:
  void TellNews();
  // Up to `most` bytes before `offset`; fewer or none if not available.
  std::string Before(std::uint64_t offset, std::size_t most) const;

  const std::string file_;
  Way way_ = Way::kHere;
  bool ended_ = false;
  std::uint64_t end_ = 0;
  std::string kept_;  // the last bytes, if there is no file
  TimeIndex index_;
  std::vector<std::weak_ptr<const std::function<void()>>> watches_;
};

// A worker's log file: opened safely, and written to without ever failing the worker.

// Opens `path` for appending, close-on-exec, and creates the file (mode 0600) and its directories
// (0700) if missing. Never blocks, and never follows a symbolic link at the end of the path, or
// another user's on the way to it (base/safe_path.h). Accepts only regular files and character
// devices, and no file with a second hard link, as writing would change somebody's unrelated file.
// An error says which path and why.
absl::StatusOr<base::UniqueFd> OpenLogFile(const std::string& path);

// Appends to a log file. Bytes that the file rejects (disk full) are dropped and counted; later
// writes try again.
class LogWriter {
 public:
  static absl::StatusOr<LogWriter> Open(const std::string& path);

  // Writes everything in one write() if the disk allows it, so that lines of several writers stay
  // whole. The first time that bytes are dropped, returns what happened: "write /logs/2/stderr.log:
  // No space left on device"; else "".
  std::string Write(std::string_view bytes);

  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  LogWriter(std::string path, base::UniqueFd file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  base::UniqueFd file_;
  std::uint64_t dropped_bytes_ = 0;
};

}  // namespace muster::worker
