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
namespace {

absl::Status CannotRead(const std::string& path, absl::string_view cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "read log file", path, cause);
}

// The file that LogWriter has made there, and nothing that took its place.
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
    // What is kept has no gap.
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
  ssize_t count;
  do {
    count = ::pread(file->get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  } while (count < 0 && errno == EINTR);
  if (count < 0) return CannotRead(file_, base::SystemCause());
  if (count == 0) return CannotRead(file_, "somebody has cut it off");
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
  // A line that is longer than that is shown from where it is known to be new.
  return offset - before.size() == begin() ? begin() : offset;
}

std::uint64_t StreamLog::FindTail(int lines) const {
  std::uint64_t offset = end_;
  // The newline at the very end ends the last line.
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

}  // namespace muster::worker
