// A process that we started, until its exit status is known.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "worker/exit_status.h"
#include "worker/process/spawn.h"

namespace muster::worker {

// Watches the exit through the process's pidfd and waits for this process only: other parts of the
// program may have children of their own. Lives on the loop's thread.
class Process {
 public:
  using ExitCallback = std::function<void(const ExitStatus&)>;

  // What happens to the process's pid when it has exited.
  enum class Number {
    kFreed,
    kKept,  // not reused, nor is its group's, until this object is destroyed or abandoned
  };

  // Takes over a process from Spawn(). `on_exit` runs once, from the loop; it may destroy the
  // Process.
  Process(boost::asio::io_context& io, Spawned spawned, ExitCallback on_exit,
          Number number = Number::kFreed);
  // If the process still runs, sends SIGKILL to its group and waits for its exit, at most one
  // second.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }

  // Signals the process's group. No effect after it has exited and its pid is freed, as another
  // group may then have that id.
  void SignalGroup(int signal);

  // Whether it is already dead, even if the callback has not run yet.
  bool HasEnded();

  // Abandons the process: no callback runs, and the destructor does not wait.
  void Abandon();

 private:
  void WatchExit();
  // Collects the exit status if it is available.
  bool Collect(ExitStatus* status);
  void OnPidfdReadable();

  const pid_t pid_;
  ExitCallback on_exit_;
  boost::asio::posix::stream_descriptor pidfd_;
  base::Timer retry_;
  const Number number_;
  bool running_ = true;
  bool has_number_ = true;
  base::Lifetime lifetime_;
};

// Notices a child's exit, and leaves waitpid() to the child's owner.

// Lives on the loop's thread. Does nothing if no descriptor is available.
class EndWatch {
 public:
  // `child` must not have been waited for. `on_end` runs once, from the loop; it may destroy the
  // EndWatch.
  EndWatch(boost::asio::io_context& io, pid_t child, std::function<void()> on_end);
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  boost::asio::posix::stream_descriptor pidfd_;
  base::Lifetime lifetime_;
};

// A program that is run for its output, with a time limit.

struct TimedCommandOptions {
  // argv[0] without a slash is looked up in PATH. No shell is involved.
  std::vector<std::string> argv;
  // Its whole environment, "NAME=value" each.
  std::vector<std::string> env;
  // After this time its process group gets SIGKILL.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
  // Output beyond this is read and discarded.
  std::size_t output_limit = 256 * 1024;
};

// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h). The command's
// standard input is /dev/null.
class TimedCommand {
 public:
  using DoneCallback = std::function<void(TimedCommandResult)>;

  // Starts the command. `on_done` runs once, from the loop; it may destroy the command. An error
  // says why it could not be started; then no callback runs.
  static absl::StatusOr<std::unique_ptr<TimedCommand>> Start(boost::asio::io_context& io,
                                                             TimedCommandOptions options,
                                                             DoneCallback on_done);
  // Kills the command if it still runs. No callback runs.
  ~TimedCommand();
  TimedCommand(const TimedCommand&) = delete;
  TimedCommand& operator=(const TimedCommand&) = delete;

  // The child leads a session. A running WorkerGroup must be told about it
  // (WorkerGroup::ExcludeChild), or would take it for a process of its workers.
  pid_t pid() const { return process_->pid(); }

 private:
  TimedCommand(boost::asio::io_context& io, TimedCommandOptions options, DoneCallback on_done);
  absl::Status Spawn(boost::asio::io_context& io);
  void AwaitOutput();
  // Reads one piece if there is any; false at the end.
  bool ReadOutput();
  void OnLimit();
  void Finish();

  const TimedCommandOptions options_;
  DoneCallback on_done_;
  boost::asio::posix::stream_descriptor output_;
  base::Timer timer_;
  TimedCommandResult result_;
  std::unique_ptr<Process> process_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
