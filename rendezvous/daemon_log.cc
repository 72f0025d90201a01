#include "rendezvous/daemon_log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <mutex>
#include <utility>

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "base/program.h"

namespace muster::rendezvous {
namespace {

// As much as the kernel gives to everybody; it may give less.
constexpr int kRoom = 1 << 20;
// How long the end of the process waits for a stderr that takes nothing.
constexpr std::time_t kPatience = 1;

// Lines that are missing, and have not been told of.
using Lost = std::atomic<std::uint64_t>;

std::string LostSentence(std::uint64_t lines) {
  return absl::StrCat("musterd: ", lines, lines == 1 ? " line is" : " lines are",
                      " missing here: nothing was reading\n");
}

// What the thread works with; it may outlive everything else.
struct Copying {
  int from;
  int to;
  std::shared_ptr<Lost> lost;
};

// Waits for as long as it takes. False on an error.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      // Somebody who shares the stream has made it non-blocking.
      pollfd writable = {fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool IsEmpty(int pipe) {
  int bytes = 0;
  return ::ioctl(pipe, FIONREAD, &bytes) == 0 && bytes == 0;
}

// Runs on the thread until the pipe ends.
void* Copy(void* argument) {
  const std::unique_ptr<Copying> copying(static_cast<Copying*>(argument));
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(copying->from, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    const std::string_view text(buffer, static_cast<std::size_t>(count));
    if (!WriteAll(copying->to, text)) *copying->lost += std::count(text.begin(), text.end(), '\n');
    // Those that came last: no other line comes along to tell of them.
    if (*copying->lost == 0 || !IsEmpty(copying->from)) continue;
    const std::uint64_t lost = copying->lost->exchange(0);
    if (lost > 0 && !WriteAll(copying->to, LostSentence(lost))) *copying->lost += lost;
  }
  ::close(copying->from);
  return nullptr;
}

}  // namespace

// The base's mutex makes one line follow another; nothing under it waits.
class DaemonLog::Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit Sink(int fd) : direct_(fd) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    ::fcntl(ends[1], F_SETPIPE_SZ, kRoom);
    auto copying = std::make_unique<Copying>(Copying{ends[0], fd, lost_});
    // Signals are for the threads that wait for them.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool runs = ::pthread_create(&thread_, nullptr, Copy, copying.get()) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!runs) {
      ::close(ends[0]);
      ::close(ends[1]);
      return;
    }
    copying.release();
    pipe_ = ends[1];
    direct_ = -1;
  }

  void Write(std::string_view line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Add(line);
  }

  std::uint64_t missing() const { return *lost_; }

  void End() {
    const std::lock_guard<std::mutex> lock(mutex_);
    direct_ = -1;
    if (pipe_ < 0) return;
    ::close(std::exchange(pipe_, -1));
    timespec end = {};
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += kPatience;
    if (::pthread_clockjoin_np(thread_, nullptr, CLOCK_MONOTONIC, &end) != 0) {
      ::pthread_detach(thread_);
    }
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    Add({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  void Add(std::string_view line) {
    const std::uint64_t lost = lost_->exchange(0);
    if (lost > 0 && !Put(LostSentence(lost))) {
      *lost_ += lost + 1;
    } else if (!Put(line)) {
      ++*lost_;
    }
  }

  // The kernel takes up to PIPE_BUF bytes whole or not at all.
  bool Put(std::string_view line) {
    // Without a pipe or a thread, of which the system has none to give; gRPC won't start either.
    if (direct_ >= 0) return WriteAll(direct_, line);
    if (line.size() <= PIPE_BUF) return Take(line);
    return Take(std::string(line.substr(0, PIPE_BUF - 4)) + "...\n");
  }

  bool Take(std::string_view line) const {
    return pipe_ >= 0 && ::write(pipe_, line.data(), line.size()) >= 0;
  }

  const std::shared_ptr<Lost> lost_ = std::make_shared<Lost>(0);
  // Where lines go: into the pipe, which is -1 once it has ended, or straight to the stream.
  int pipe_ = -1;
  int direct_;
  pthread_t thread_ = {};
};

DaemonLog::DaemonLog(const std::string& name, int fd) : sink_(std::make_shared<Sink>(fd)) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(name, sink_));
  spdlog::set_pattern(base::kLogPattern);
}

DaemonLog::~DaemonLog() {
  End();
}

void DaemonLog::Write(std::string_view line) {
  sink_->Write(line);
}

std::uint64_t DaemonLog::missing() const {
  return sink_->missing();
}

void DaemonLog::End() {
  sink_->End();
}

namespace {

class Sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit Sink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string text(line.data(), line.size());
    if (lost_ > 0) text = LostSentence(lost_) + text;
    if (Put(text)) {
      lost_ = 0;
    } else {
      ++lost_;
    }
  }
  void flush_() override {}

 private:
  // A pipe that can be written to has room for PIPE_BUF bytes. O_NONBLOCK would be set for all who
  // share the stream.
  bool Put(std::string_view text) const {
    pollfd stream = {fd_, POLLOUT, 0};
    if (poll(&stream, 1, 0) != 1 || (stream.revents & POLLOUT) == 0) return false;
    return write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF)) >= 0;
  }

  const int fd_;
  std::uint64_t lost_ = 0;
};

}  // namespace

void UseKeeperLog(const std::string& name, int fd) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(name, std::make_shared<Sink>(fd)));
  spdlog::set_pattern(base::kLogPattern);
}

}  // namespace muster::rendezvous
