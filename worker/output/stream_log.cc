#include "worker/output/stream_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"

namespace muster::worker {

void TimeIndex::Add(Time now, std::uint64_t offset) {
  if (!points_.empty() && now - points_.back().time < interval_) return;
  points_.push_back({now, offset});
  while (points_.size() > kMost) Thin();
}

// Drops only points close to the one before, so that output after a pause keeps its own point.
void TimeIndex::Thin() {
  interval_ *= 2;
  std::vector<Point> kept;
  for (const Point& point : points_) {
    if (kept.empty() || point.time - kept.back().time >= interval_) kept.push_back(point);
  }
  points_ = std::move(kept);
}

std::uint64_t TimeIndex::Find(Time time, std::uint64_t end) const {
  const auto next =
      std::upper_bound(points_.begin(), points_.end(), time,
                       [](Time wanted, const Point& point) { return wanted < point.time; });
  if (next != points_.begin()) {
    const Point& before = *(next - 1);
    if (time - before.time < interval_) return before.offset;
  }
  return next == points_.end() ? end : next->offset;
}

namespace {

absl::Status CannotRead(const std::string& path, absl::string_view cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "read log file", path, cause);
}

// Opens LogWriter's file, and nothing that replaced it.
absl::StatusOr<base::UniqueFd> OpenToRead(const std::string& path) {
  absl::StatusOr<base::UniqueFd> file =
      base::OpenFile(path, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
  if (!file.ok()) return CannotRead(path, file.status().message());
  struct stat info = {};
  if (::fstat(file->get(), &info) != 0) return CannotRead(path, base::SystemCause());
  if (!S_ISREG(info.st_mode)) return CannotRead(path, "it is not a regular file");
  return file;
}

}  // namespace

void StreamLog::Append(std::string_view bytes, std::size_t in_file, Time now) {
  index_.Add(now, end_);
  if (has_file()) {
    end_ += in_file;
  } else {
    end_ += bytes.size();
    // The buffer has no gap.
    if (bytes.size() > kKept) kept_.clear();
    kept_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kKept)));
    if (kept_.size() > 2 * kKept) kept_.erase(0, kept_.size() - kKept);
  }
  TellNews();
}

void StreamLog::End() {
  if (std::exchange(ended_, true)) return;
  TellNews();
}

void StreamLog::Forget() {
  kept_.clear();
  kept_.shrink_to_fit();
}

StreamLog::Watch StreamLog::WatchNews(std::function<void()> call) {
  std::erase_if(watches_, [](const auto& watch) { return watch.expired(); });
  Watch watch = std::make_shared<const std::function<void()>>(std::move(call));
  watches_.push_back(watch);
  return watch;
}

void StreamLog::TellNews() {
  for (const auto& watch : watches_) {
    if (const Watch held = watch.lock()) (*held)();
  }
}

absl::StatusOr<std::string> StreamLog::Read(std::uint64_t offset, std::size_t most) const {
  most = static_cast<std::size_t>(std::min<std::uint64_t>(most, end_ - offset));
  if (!has_file()) return kept_.substr(static_cast<std::size_t>(offset - begin()), most);
  const absl::StatusOr<base::UniqueFd> file = OpenToRead(file_);
  if (!file.ok()) return file.status();
  std::string bytes(most, '\0');
  const ssize_t count = TEMP_FAILURE_RETRY(
      ::pread(file->get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)));
  if (count < 0) return CannotRead(file_, base::SystemCause());
  if (count == 0) return CannotRead(file_, "it was truncated by another program");
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

std::string StreamLog::Before(std::uint64_t offset, std::size_t most) const {
  const std::uint64_t from = offset - std::min<std::uint64_t>(most, offset - begin());
  if (from == offset) return "";
  return Read(from, static_cast<std::size_t>(offset - from)).value_or("");
}

std::uint64_t StreamLog::FindTime(Time time) const {
  const std::uint64_t offset = std::max(index_.Find(time, end_), begin());
  const std::string before = Before(offset, kKept);
  const std::size_t newline = before.rfind('\n');
  if (newline != std::string::npos) return offset - (before.size() - newline - 1);
  // In a longer line, start where the bytes are known to be new.
  return offset - before.size() == begin() ? begin() : offset;
}

std::uint64_t StreamLog::FindTail(int lines) const {
  std::uint64_t offset = end_;
  // A newline at the very end ends the last line.
  std::int64_t left = lines;
  const std::string last = Before(end_, 1);
  if (last == "\n") ++left;
  while (left > 0 && end_ - offset < kLookBack) {
    const std::string block = Before(offset, kKept);
    if (block.empty()) return begin();
    for (std::size_t i = block.size(); i > 0; --i) {
      if (block[i - 1] == '\n' && --left == 0) return offset - block.size() + i;
    }
    offset -= block.size();
  }
  return offset;
}

namespace {

absl::Status OpenError(const std::string& path, const std::string& cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "open log file", path, cause);
}

}  // namespace

absl::StatusOr<base::UniqueFd> OpenLogFile(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for its reader.
  absl::StatusOr<base::UniqueFd> file =
      base::OpenFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600,
                     {.make = 0700});
  if (!file.ok()) return OpenError(path, std::string(file.status().message()));
  struct stat info;
  if (::fstat(file->get(), &info) != 0) return OpenError(path, base::SystemCause());
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
    return OpenError(path, "it is not a regular file");
  }
  if (S_ISREG(info.st_mode) && info.st_nlink > 1) {
    return OpenError(path, "it has another hard link; remove it, or choose another path");
  }
  // Writes may block: clear O_NONBLOCK.
  ::fcntl(file->get(), F_SETFL, O_APPEND);
  return file;
}

absl::StatusOr<LogWriter> LogWriter::Open(const std::string& path) {
  absl::StatusOr<base::UniqueFd> file = OpenLogFile(path);
  if (!file.ok()) return file.status();
  return LogWriter(path, *std::move(file));
}

std::string LogWriter::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    const bool first = dropped_bytes_ == 0;
    dropped_bytes_ += bytes.size();
    return first ? absl::StrCat("write ", path_, ": ", base::SystemCause()) : "";
  }
  return "";
}

}  // namespace muster::worker
