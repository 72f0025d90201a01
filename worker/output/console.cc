#include "worker/output/console.h"

#include <sys/stat.h>

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/output/pseudo_terminal.h"

namespace muster::worker {
namespace {

// Whether both are one pipe, terminal or socket. Two descriptors of one file are left apart: each
// may have a place of its own in it.
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
  if (to.is_terminal) {
    if (const std::string before = to.bar.Leave(writer); !before.empty()) to.sink.Write(before);
  }
  to.sink.Write(text);
}

void Console::Rewrite(StreamKind kind, const void* writer, std::string_view line) {
  Stream& to = stream(kind);
  if (to.sink.pending_size() > 0) return;
  to.sink.Write(to.bar.Rewrite(writer, line, TerminalColumns(fd(kind))));
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
  // This goes to stderr, which is why stdout is first.
  if (lost > 0 && on_warning_) {
    on_warning_(
        absl::StrCat("stdout: nobody has read the last ", lost, " bytes of output; they are lost"));
  }
  stderr_->sink.GiveUp();
}

}  // namespace muster::worker
