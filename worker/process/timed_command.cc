#include "worker/process/timed_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/failure.h"
#include "base/unique_fd.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

// From SIGKILL until it is left behind.
constexpr std::chrono::seconds kGiveUp(5);
// More than a pipe holds, and so than may be left in it when the command has ended.
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
  command->AwaitLimit(command->options_.limit);
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

void TimedCommand::AwaitLimit(std::chrono::milliseconds limit) {
  timer_.expires_after(limit);
  timer_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (!error) OnLimit();
  }));
}

void TimedCommand::OnLimit() {
  if (result_.timed_out) {
    process_->Abandon();
    return Finish();
  }
  result_.timed_out = true;
  process_->SignalGroup(SIGKILL);
  AwaitLimit(kGiveUp);
}

// What the command has started may hold the pipe open for ever, so its end is not waited for.
void TimedCommand::Finish() {
  for (int i = 0; i < kMaxLastReads && ReadOutput(); ++i) {
  }
  output_.close();
  timer_.cancel();
  // The last thing done: the callback may destroy the command.
  const DoneCallback on_done = std::move(on_done_);
  on_done(std::move(result_));
}

}  // namespace muster::worker
