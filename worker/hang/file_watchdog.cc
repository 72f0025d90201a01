#include "worker/hang/file_watchdog.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "base/json.h"
#include "base/safe_path.h"

namespace muster::worker {
namespace {

using base::Json;

// A finite number, or one as text.
std::optional<double> NumberAt(const Json& object, const char* key) {
  const auto entry = object.find(key);
  double number = 0;
  if (entry == object.end()) return std::nullopt;
  if (entry->is_number()) {
    number = entry->get<double>();
  } else if (!entry->is_string() || !absl::SimpleAtod(entry->get<std::string>(), &number)) {
    return std::nullopt;
  }
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

bool IsBetween(double number, double least, double most) {
  return number >= least && number <= most;
}

}  // namespace

std::optional<TimerRequest> ParseTimerRequest(std::string_view line) {
  const Json object = base::ParseJson(line);
  if (!object.is_object()) return std::nullopt;
  const std::optional<double> pid = NumberAt(object, "pid");
  const std::optional<double> expiration_time = NumberAt(object, "expiration_time");
  const auto scope = object.find("scope_id");
  const double signal =
      object.contains("signal") ? NumberAt(object, "signal").value_or(NSIG) : SIGKILL;
  if (!pid || !IsBetween(*pid, 1, 0x7fffffff) || !expiration_time || scope == object.end() ||
      !scope->is_string() || !IsBetween(signal, -NSIG, SIGRTMAX)) {
    return std::nullopt;
  }
  return TimerRequest{static_cast<pid_t>(*pid), scope->get<std::string>(), *expiration_time,
                      static_cast<int>(signal)};
}

namespace {

// Pipes keep writes up to this size whole, and workers write whole requests.
constexpr std::size_t kMaxLine = PIPE_BUF;
// The limit on timers of one run; more come from a faulty worker.
constexpr std::size_t kMaxTimers = 100'000;

// Clamps to times that the clock can represent.
std::chrono::system_clock::time_point TimeAt(double unix_seconds) {
  constexpr double kFarOff = 9e9;  // the year 2255
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::duration<double>(std::min(unix_seconds, kFarOff))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileWatchdog>> FileWatchdog::Open(boost::asio::io_context& io,
                                                                 std::string path,
                                                                 Callbacks callbacks) {
  constexpr char kAttempt[] = "make the watchdog's FIFO";
  const absl::StatusOr<base::Spot> spot = base::FindSpot(path);
  if (!spot.ok()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, kAttempt, path,
                         spot.status().message());
  }
  const int directory = spot->directory.get();
  const char* const name = spot->name.c_str();
  struct stat info;
  if (::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISFIFO(info.st_mode)) {
      return base::Failure(absl::StatusCode::kFailedPrecondition, kAttempt, path,
                           "another file exists there already");
    }
    if (::unlinkat(directory, name, 0) != 0) {
      return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kAttempt, path);
    }
  }
  if (::mkfifoat(directory, name, 0600) != 0) {
    return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kAttempt, path);
  }
  // Opened for writing, too: otherwise it would report end of file, and stay readable, once the
  // first worker closes it.
  base::UniqueFd fifo(::openat(directory, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!fifo.valid() || ::fstat(fifo.get(), &info) != 0) {
    const absl::Status status = base::SystemFailure(absl::StatusCode::kFailedPrecondition,
                                                    "open the watchdog's FIFO", path);
    ::unlinkat(directory, name, 0);
    return status;
  }
  if (!S_ISFIFO(info.st_mode) || !base::IsOurs(info.st_uid)) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, "open the watchdog's FIFO", path,
                         "another user has put another file there");
  }
  return std::unique_ptr<FileWatchdog>(
      new FileWatchdog(io, std::move(path), std::move(fifo), std::move(callbacks)));
}

FileWatchdog::FileWatchdog(boost::asio::io_context& io, std::string path, base::UniqueFd fifo,
                           Callbacks callbacks)
    : path_(std::move(path)),
      callbacks_(std::move(callbacks)),
      fifo_(io, fifo.release()),
      next_(io) {
  AwaitRequests();
}

FileWatchdog::~FileWatchdog() {
  ::unlink(path_.c_str());
}

void FileWatchdog::Clear() {
  timers_.clear();
  next_.Cancel();
}

void FileWatchdog::Suspend() {
  if (!suspended_at_) suspended_at_ = std::chrono::system_clock::now();
  next_.Cancel();
}

void FileWatchdog::Resume() {
  if (!suspended_at_) return;
  // Requests that workers made before they were stopped.
  ReadRequests();
  const Time::duration pause = std::chrono::system_clock::now() - *suspended_at_;
  suspended_at_.reset();
  for (auto& [key, timer] : timers_) timer.deadline += pause;
  AwaitNextDeadline();
}

void FileWatchdog::AwaitRequests() {
  fifo_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   lifetime_.Guard([this](boost::system::error_code error) {
                     if (error || !ReadRequests()) return;
                     AwaitNextDeadline();
                     AwaitRequests();
                   }));
}

bool FileWatchdog::ReadRequests() {
  std::array<char, 64 * 1024> buffer;
  const ssize_t count = ::read(fifo_.native_handle(), buffer.data(), buffer.size());
  if (count > 0) {
    OnBytes(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
    return true;
  }
  return count < 0 && (errno == EAGAIN || errno == EINTR);
}

void FileWatchdog::OnBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (!skipping_) held_.append(bytes.substr(0, end));
    if (held_.size() > kMaxLine) {
      skipping_ = true;
      held_.clear();
    }
    if (end == std::string_view::npos) return;
    OnLine(skipping_ ? "too long" : held_);
    skipping_ = false;
    held_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void FileWatchdog::OnLine(std::string_view line) {
  if (line.empty()) return;
  if (const std::optional<TimerRequest> request = ParseTimerRequest(line)) return Apply(*request);
  if (++malformed_lines_ > 1 || !callbacks_.on_warning) return;
  callbacks_.on_warning(absl::StrCat(
      "the watchdog's FIFO ", path_,
      " got a line that is not a timer request; this one and others like it are ignored"));
}

void FileWatchdog::Apply(const TimerRequest& request) {
  const std::pair<pid_t, std::string> key(request.pid, request.scope);
  if (request.IsRelease()) {
    timers_.erase(key);
  } else if (timers_.size() < kMaxTimers || timers_.contains(key)) {
    timers_[key] = {TimeAt(request.expiration_time), request.signal};
  }
}

void FileWatchdog::AwaitNextDeadline() {
  if (timers_.empty() || suspended_at_) return next_.Cancel();
  const auto earliest = std::min_element(
      timers_.begin(), timers_.end(),
      [](const auto& a, const auto& b) { return a.second.deadline < b.second.deadline; });
  next_.At(earliest->second.deadline, [this] { OnDeadline(); });
}

void FileWatchdog::OnDeadline() {
  // A release or a new deadline may still be in the FIFO; it was in time.
  ReadRequests();
  const Time now = std::chrono::system_clock::now();
  // For each process, the timer with a signal that expired first.
  std::map<pid_t, std::pair<std::string, Timer>> overdue;
  for (auto entry = timers_.begin(); entry != timers_.end();) {
    const auto& [key, timer] = *entry;
    if (timer.deadline > now) {
      ++entry;
      continue;
    }
    if (timer.signal > 0) {
      const auto [known, is_new] = overdue.try_emplace(key.first, key.second, timer);
      if (!is_new && timer.deadline < known->second.second.deadline) {
        known->second = {key.second, timer};
      }
    }
    entry = timers_.erase(entry);
  }
  std::erase_if(timers_, [&](const auto& entry) { return overdue.contains(entry.first.first); });
  AwaitNextDeadline();
  const auto on_expired = callbacks_.on_expired;
  const base::Lifetime::Watch watch = lifetime_.watch();
  for (const auto& [pid, expired] : overdue) {
    if (watch.over()) return;
    if (on_expired) on_expired(pid, expired.first, expired.second.signal);
  }
}

}  // namespace muster::worker
