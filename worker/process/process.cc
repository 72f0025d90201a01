#include "worker/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/failure.h"
#include "base/unique_fd.h"
#include "worker/process/spawn.h"

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
    TEMP_FAILURE_RETRY(::poll(&ended, 1, kDestructorWaitMs));
  }
  siginfo_t ignored = {};
  ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.native_handle()), &ignored, WEXITED | WNOHANG);
}

void Process::SignalGroup(int signal) {
  if (has_number_) ::kill(-pid_, signal);
}

void Process::Abandon() {
  running_ = has_number_ = false;
  retry_.Cancel();
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
    // The process is dead, but an attached debugger holds it, so its exit status is not available
    // yet. No event tells when that changes, hence the only retry by time in this folder.
    retry_.After(kRetry, [this] { OnPidfdReadable(); });
    return;
  }
  const ExitCallback on_exit = std::move(on_exit_);
  on_exit(status);
}

EndWatch::EndWatch(boost::asio::io_context& io, pid_t child, std::function<void()> on_end)
    : pidfd_(io) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (pidfd < 0) return;
  pidfd_.assign(pidfd);
  pidfd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    lifetime_.Guard([on_end = std::move(on_end)](boost::system::error_code error) {
                      if (!error) on_end();
                    }));
}

namespace {

// From SIGKILL until the process is abandoned.
constexpr std::chrono::seconds kGiveUp(5);
// More than a pipe holds, so enough for what is left in it when the command has exited.
constexpr int kMaxLastReads = 32;

}  // namespace

absl::StatusOr<std::unique_ptr<TimedCommand>> TimedCommand::Start(boost::asio::io_context& io,
                                                                  TimedCommandOptions options,
                                                                  DoneCallback on_done) {
  std::unique_ptr<TimedCommand> command(
      new TimedCommand(io, std::move(options), std::move(on_done)));
  const absl::Status status = command->Spawn(io);
  if (!status.ok()) return status;
  command->AwaitOutput();
  command->timer_.After(command->options_.limit, [timed = command.get()] { timed->OnLimit(); });
  return command;
}

TimedCommand::TimedCommand(boost::asio::io_context& io, TimedCommandOptions options,
                           DoneCallback on_done)
    : options_(std::move(options)), on_done_(std::move(on_done)), output_(io), timer_(io) {}

TimedCommand::~TimedCommand() = default;

absl::Status TimedCommand::Spawn(boost::asio::io_context& io) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return base::SystemFailure(absl::StatusCode::kInternal, "make a pipe");
  }
  output_.assign(ends[0]);
  output_.non_blocking(true);
  const base::UniqueFd write_end(ends[1]);
  const base::UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return base::SystemFailure(absl::StatusCode::kInternal, "open", "/dev/null");
  SpawnRequest request;
  request.argv = options_.argv;
  request.env = options_.env;
  request.stdin_fd = null.get();
  request.stdout_fd = write_end.get();
  request.stderr_fd = write_end.get();
  absl::StatusOr<Spawned> spawned = worker::Spawn(request);
  if (!spawned.ok()) return spawned.status();
  process_ = std::make_unique<Process>(io, *std::move(spawned), [this](const ExitStatus& status) {
    result_.status = status;
    Finish();
  });
  return absl::OkStatus();
}

void TimedCommand::AwaitOutput() {
  output_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     lifetime_.Guard([this](boost::system::error_code error) {
                       if (!error && ReadOutput()) AwaitOutput();
                     }));
}

bool TimedCommand::ReadOutput() {
  std::array<char, 16 * 1024> buffer;
  const ssize_t count = ::read(output_.native_handle(), buffer.data(), buffer.size());
  if (count <= 0) return count < 0 && (errno == EINTR || errno == EAGAIN);
  const std::size_t size = static_cast<std::size_t>(count);
  const std::size_t room = options_.output_limit - result_.output.size();
  result_.output.append(buffer.data(), std::min(size, room));
  result_.output_cut |= size > room;
  return true;
}

void TimedCommand::OnLimit() {
  if (result_.timed_out) {
    process_->Abandon();
    return Finish();
  }
  result_.timed_out = true;
  process_->SignalGroup(SIGKILL);
  timer_.After(kGiveUp, [this] { OnLimit(); });
}

// Does not wait for the end of the pipe, which the command's children may hold open.
void TimedCommand::Finish() {
  for (int i = 0; i < kMaxLastReads && ReadOutput(); ++i) {
  }
  output_.close();
  timer_.Cancel();
  // Last, as the callback may destroy the command.
  const DoneCallback on_done = std::move(on_done_);
  on_done(std::move(result_));
}

}  // namespace muster::worker
