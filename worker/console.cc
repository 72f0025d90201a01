#include "worker/console.h"

#include <sys/stat.h>

#include <csignal>
#include <utility>

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

Console::Console(boost::asio::io_context& io, std::function<void(const std::string&)> on_warning,
                 int stdout_fd, int stderr_fd)
    : stdout_fd_(stdout_fd),
      stderr_fd_(stderr_fd),
      stdout_sink_(io, stdout_fd, "stdout", on_warning) {
  std::signal(SIGPIPE, SIG_IGN);
  if (!SameStream(stdout_fd, stderr_fd)) {
    stderr_sink_ = std::make_unique<ConsoleSink>(io, stderr_fd, "stderr", std::move(on_warning));
  }
}

void Console::Flush(std::chrono::milliseconds limit) {
  stdout_sink_.Flush(limit);
  if (stderr_sink_) stderr_sink_->Flush(limit);
}

}  // namespace muster::worker
