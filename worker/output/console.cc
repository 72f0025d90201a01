#include "worker/output/console.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "worker/output/pseudo_terminal.h"

namespace muster::worker {
namespace {

// Opens the pipe or terminal behind `fd` again, so that it can be nonblocking without affecting
// other processes. Invalid if the system refuses.
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
  if (::fstat(fd, &info) != 0) return;  // closed: every write will fail
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
    kind_ = Kind::kPlain;  // what epoll rejects does not block
  }
}

void ConsoleSink::Write(std::string_view bytes) {
  // Bytes that the stream accepts now need not be copied.
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
  // The kernel writes up to PIPE_BUF bytes to a pipe atomically.
  if (kind_ == Kind::kOwn && is_pipe_) {
    // An empty pipe accepts more at once, and wakes its reader only once. Leave half of its room to
    // other processes that write at this moment.
    int there = 0;
    const bool empty = ::ioctl(fd_, FIONREAD, &there) == 0 && there == 0;
    return empty ? std::max<std::size_t>(capacity_ / 2, PIPE_BUF) : PIPE_BUF;
  }
  return is_pipe_ || kind_ == Kind::kShared ? PIPE_BUF : std::string_view::npos;
}

std::size_t ConsoleSink::NextPiece(std::string_view bytes) const {
  if (bytes.size() <= PIPE_BUF) return bytes.size();
  // End the piece with a line: other processes' writes to the pipe then cannot split lines.
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

namespace {

// Whether both are the same pipe, terminal or socket. Two descriptors of one file do not count, as
// each may have its own offset.
bool SameStream(int first, int second) {
  struct stat a;
  struct stat b;
  if (::fstat(first, &a) != 0 || ::fstat(second, &b) != 0) return false;
  return !S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

Console::Stream::Stream(boost::asio::io_context& io, int fd, std::string name,
                        std::function<void(const std::string&)> on_warning)
    : sink(io, fd, std::move(name), std::move(on_warning)), is_terminal(::isatty(fd) == 1) {}

Console::Console(boost::asio::io_context& io, std::function<void(const std::string&)> on_warning,
                 int stdout_fd, int stderr_fd)
    : on_warning_(std::move(on_warning)),
      stdout_fd_(stdout_fd),
      stderr_fd_(stderr_fd),
      stdout_(io, stdout_fd, "stdout", on_warning_),
      resized_(io) {
  std::signal(SIGPIPE, SIG_IGN);
  if (!SameStream(stdout_fd, stderr_fd)) {
    stderr_ = std::make_unique<Stream>(io, stderr_fd, "stderr", on_warning_);
  }
}

bool Console::CanRewrite(StreamKind kind) const {
  if (whole_lines_) return false;
  return kind == StreamKind::kStderr && stderr_ ? stderr_->is_terminal : stdout_.is_terminal;
}

void Console::Write(StreamKind kind, std::string_view text, const void* writer) {
  if (text.empty()) return;
  Stream& to = stream(kind);
  if (const std::string before = to.last_line.Leave(writer, text); !before.empty()) {
    to.sink.Write(before);
  }
  to.sink.Write(text);
}

void Console::Rewrite(StreamKind kind, const void* writer, std::string_view line) {
  Stream& to = stream(kind);
  if (to.sink.pending_size() > 0) return;
  to.sink.Write(to.last_line.Rewrite(writer, line, TerminalColumns(fd(kind))));
}

void Console::ShowPart(StreamKind kind, const void* writer, std::string_view line) {
  Stream& to = stream(kind);
  to.sink.Write(to.last_line.Show(writer, line));
}

void Console::AddTerminal(StreamKind kind, int our_end) {
  if (terminals_.empty()) {
    resized_.add(SIGWINCH);
    AwaitResize();
  }
  terminals_.insert({our_end, kind});
}

void Console::RemoveTerminal(StreamKind kind, int our_end) {
  terminals_.erase({our_end, kind});
  if (!terminals_.empty()) return;
  resized_.clear();
  resized_.cancel();
}

void Console::AwaitResize() {
  resized_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    for (const auto& [our_end, kind] : terminals_) CopyWindowSize(fd(kind), our_end);
    AwaitResize();
  });
}

void Console::WhenWritten(std::function<void()> callback) {
  stdout_.sink.WhenWritten([this, callback = std::move(callback)] {
    if (!stderr_) return callback();
    stderr_->sink.WhenWritten(callback);
  });
}

void Console::Flush(std::chrono::milliseconds limit) {
  stdout_.sink.Flush(limit);
  if (stderr_) stderr_->sink.Flush(limit);
}

void Console::GiveUp() {
  const std::size_t lost = stdout_.sink.GiveUp();
  if (!stderr_) return;
  // The warning goes to stderr, so stdout is given up first.
  if (lost > 0 && on_warning_) {
    on_warning_(
        absl::StrCat("stdout: nothing read the last ", lost, " bytes of output; they are lost"));
  }
  stderr_->sink.GiveUp();
}

void PartialLineTimer::OnBytes(bool ended, bool holds_back) {
  if (!holds_back) {
    since_.reset();
    return;
  }
  if (ended || !since_) since_ = std::chrono::steady_clock::now();
  if (!timer_.waits()) Arm();
}

void PartialLineTimer::Arm() {
  timer_.At(*since_ + kPatience, [this] {
    if (!since_) return;
    // A newer line is being held back.
    if (*since_ + kPatience > std::chrono::steady_clock::now()) return Arm();
    if (show_()) since_.reset();
  });
}

}  // namespace muster::worker
