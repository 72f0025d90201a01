#include "worker/output/console_sink.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::worker {
namespace {

// A second description of the pipe or terminal behind `fd`, which can be made non-blocking without
// the others noticing. Invalid where the system does not let us.
base::UniqueFd Reopen(int fd) {
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  return base::UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

// An epoll set that is readable exactly when `fd` is writable.
base::UniqueFd WritableAsReadable(int fd) {
  base::UniqueFd set(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLOUT;
  if (set.valid() && ::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) != 0) set.reset();
  return set;
}

}  // namespace

ConsoleSink::ConsoleSink(boost::asio::io_context& io, int fd, std::string name,
                         std::function<void(const std::string&)> on_warning)
    : name_(std::move(name)), on_warning_(std::move(on_warning)), fd_(fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return;  // closed: each write will say so
  is_pipe_ = S_ISFIFO(info.st_mode);
  if (S_ISSOCK(info.st_mode)) {
    kind_ = Kind::kSocket;
  } else if (is_pipe_ || ::isatty(fd) == 1) {
    own_ = Reopen(fd);
    kind_ = own_.valid() ? Kind::kOwn : Kind::kShared;
  } else {
    return;
  }
  if (kind_ == Kind::kOwn) {
    fd_ = own_.get();
    if (is_pipe_) capacity_ = static_cast<std::size_t>(std::max(::fcntl(fd_, F_GETPIPE_SZ), 0));
    watch_.emplace(io, own_.release());
    return;
  }
  base::UniqueFd set = WritableAsReadable(fd_);
  if (set.valid()) {
    watch_.emplace(io, set.release());
  } else {
    kind_ = Kind::kPlain;  // what epoll does not know does not block either
  }
}

void ConsoleSink::Write(std::string_view bytes) {
  // What the stream takes at once need not be copied.
  if (!awaiting_ && pending_size() == 0) bytes.remove_prefix(WriteWhatFits(bytes));
  if (bytes.empty()) return;
  pending_.append(bytes);
  if (!awaiting_) AwaitWritable();
}

void ConsoleSink::WhenWritten(std::function<void()> callback) {
  if (pending_size() == 0) return callback();
  on_written_ = std::move(callback);
}

void ConsoleSink::Flush(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  WriteSome();
  while (pending_size() > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd writable = {fd_, POLLOUT, 0};
    if (left.count() <= 0 || ::poll(&writable, 1, static_cast<int>(left.count())) == 0) return;
    WriteSome();
  }
}

std::size_t ConsoleSink::GiveUp() {
  WriteSome();
  const std::size_t lost = pending_size();
  pending_.clear();
  written_ = 0;
  dropped_bytes_ += lost;
  return lost;
}

std::size_t ConsoleSink::WholePiece() const {
  // The kernel takes up to PIPE_BUF bytes into a pipe whole or not at all.
  if (kind_ == Kind::kOwn && is_pipe_) {
    // An empty one takes what it has room for, and its reader is woken once for all of that. Half
    // of the room is left to others who write in this very moment.
    int there = 0;
    const bool empty = ::ioctl(fd_, FIONREAD, &there) == 0 && there == 0;
    return empty ? std::max<std::size_t>(capacity_ / 2, PIPE_BUF) : PIPE_BUF;
  }
  return is_pipe_ || kind_ == Kind::kShared ? PIPE_BUF : std::string_view::npos;
}

std::size_t ConsoleSink::NextPiece(std::string_view bytes) const {
  if (bytes.size() <= PIPE_BUF) return bytes.size();
  // A write that ends with a line cannot be split by what another process writes to the same pipe.
  const std::string_view piece = bytes.substr(0, WholePiece());
  const std::size_t newline = piece.rfind('\n');
  return newline == std::string_view::npos ? piece.size() : newline + 1;
}

ssize_t ConsoleSink::TryWrite(const char* data, std::size_t size) {
  switch (kind_) {
    case Kind::kPlain:
    case Kind::kOwn:
      return ::write(fd_, data, size);
    case Kind::kSocket:
      return ::send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::kShared: {
      pollfd writable = {fd_, POLLOUT, 0};
      if (::poll(&writable, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
      }
      return ::write(fd_, data, size);
    }
  }
  std::abort();
}

std::size_t ConsoleSink::WriteWhatFits(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::string_view rest = bytes.substr(done);
    const ssize_t count = TryWrite(rest.data(), NextPiece(rest));
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN && watch_.has_value()) {
      break;
    } else if (errno != EINTR) {
      Drop(rest.size(), errno);
      done = bytes.size();
    }
  }
  return done;
}

void ConsoleSink::WriteSome() {
  written_ += WriteWhatFits(std::string_view(pending_).substr(written_));
  if (pending_size() == 0) {
    pending_.clear();
    written_ = 0;
  } else {
    if (written_ > pending_.size() / 2) {
      pending_.erase(0, written_);
      written_ = 0;
    }
    AwaitWritable();
  }
}

void ConsoleSink::Drop(std::size_t count, int error) {
  dropped_bytes_ += count;
  if (std::exchange(warned_, true) || !on_warning_) return;
  on_warning_(
      absl::StrCat("write ", name_, ": ", base::SystemCause(error), "; output is being lost"));
}

void ConsoleSink::AwaitWritable() {
  if (std::exchange(awaiting_, true)) return;
  using boost::asio::posix::stream_descriptor;
  const auto ready =
      kind_ == Kind::kOwn ? stream_descriptor::wait_write : stream_descriptor::wait_read;
  watch_->async_wait(ready, lifetime_.Guard([this](boost::system::error_code error) {
    if (!error) OnWritable();
  }));
}

void ConsoleSink::OnWritable() {
  awaiting_ = false;
  WriteSome();
  if (pending_size() > kRoom / 2) return;
  for (const std::function<void()>& callback : std::exchange(waiting_, {})) callback();
  if (pending_size() > 0 || !on_written_) return;
  const auto on_written = std::exchange(on_written_, nullptr);
  on_written();
}

}  // namespace muster::worker
