#include "worker/process/process.h"

#include <poll.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <csignal>

namespace muster::worker {
namespace {

constexpr int kDestructorWaitMs = 1000;
constexpr std::chrono::milliseconds kRetry(100);

}  // namespace

Process::Process(boost::asio::io_context& io, Spawned spawned, ExitCallback on_exit, Number number)
    : pid_(spawned.pid),
      on_exit_(std::move(on_exit)),
      pidfd_(io, spawned.pidfd.release()),
      retry_(io),
      number_(number) {
  WatchExit();
}

Process::~Process() {
  if (!has_number_) return;
  if (running_) {
    SignalGroup(SIGKILL);
    pollfd ended = {pidfd_.native_handle(), POLLIN, 0};
    while (::poll(&ended, 1, kDestructorWaitMs) < 0 && errno == EINTR) {
    }
  }
  siginfo_t ignored = {};
  ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.native_handle()), &ignored, WEXITED | WNOHANG);
}

void Process::SignalGroup(int signal) {
  if (has_number_) ::kill(-pid_, signal);
}

void Process::Abandon() {
  running_ = has_number_ = false;
  lifetime_.End();
}

void Process::WatchExit() {
  pidfd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    lifetime_.Guard([this](boost::system::error_code error) {
                      if (!error) OnPidfdReadable();
                    }));
}

bool Process::HasEnded() {
  siginfo_t info = {};
  return !running_ || (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.native_handle()), &info,
                                WEXITED | WNOHANG | WNOWAIT) == 0 &&
                       info.si_pid != 0);
}

bool Process::Collect(ExitStatus* status) {
  siginfo_t info = {};
  const int keep = number_ == Number::kKept ? WNOWAIT : 0;
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.native_handle()), &info,
               WEXITED | WNOHANG | keep) != 0 ||
      info.si_pid == 0) {
    return false;
  }
  if (info.si_code == CLD_EXITED) {
    status->exit_code = info.si_status;
  } else {
    status->signal = info.si_status;
    status->core_dumped = info.si_code == CLD_DUMPED;
  }
  running_ = false;
  has_number_ = number_ == Number::kKept;
  return true;
}

void Process::OnPidfdReadable() {
  ExitStatus status;
  if (!Collect(&status)) {
    // Dead, but a debugger that is attached to it has not let it go yet, and until then its exit
    // status is not ours. Nothing tells when that happens, hence the only retry by time in this
    // folder.
    retry_.expires_after(kRetry);
    retry_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
      if (!error) OnPidfdReadable();
    }));
    return;
  }
  const ExitCallback on_exit = std::move(on_exit_);
  on_exit(status);
}

}  // namespace muster::worker
