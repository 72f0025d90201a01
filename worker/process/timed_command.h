// A program that is run for what it prints, for a limited time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "worker/process/process.h"
#include "worker/process/timed_result.h"

namespace muster::worker {

struct TimedCommandOptions {
  // argv[0] without a slash is looked up in PATH. No shell is involved.
  std::vector<std::string> argv;
  // Its whole environment, "NAME=value" each.
  std::vector<std::string> env;
  // After this time it, and its process group, get SIGKILL.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
  // Output beyond this is read and thrown away.
  std::size_t output_limit = 256 * 1024;
};

// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h). Its standard
// input is /dev/null.
class TimedCommand {
 public:
  using DoneCallback = std::function<void(TimedCommandResult)>;

  // Starts it. `on_done` runs once, from the loop; it may destroy the command. An error says why it
  // could not be started, and no callback runs then.
  static absl::StatusOr<std::unique_ptr<TimedCommand>> Start(boost::asio::io_context& io,
                                                             TimedCommandOptions options,
                                                             DoneCallback on_done);
  // Kills it if it is still running. No callback runs.
  ~TimedCommand();
  TimedCommand(const TimedCommand&) = delete;
  TimedCommand& operator=(const TimedCommand&) = delete;

  // A child of this program that leads a session. A running WorkerGroup must be told about it
  // (WorkerGroup::AddStranger), or would take it for something that came from a worker.
  pid_t pid() const { return process_->pid(); }

 private:
  TimedCommand(boost::asio::io_context& io, TimedCommandOptions options, DoneCallback on_done);
  absl::Status Spawn(boost::asio::io_context& io);
  void AwaitOutput();
  // Takes one piece of what is there, if anything is; false when there is no more to come.
  bool ReadOutput();
  void AwaitLimit(std::chrono::milliseconds limit);
  void OnLimit();
  void Finish();

  const TimedCommandOptions options_;
  DoneCallback on_done_;
  boost::asio::posix::stream_descriptor output_;
  boost::asio::steady_timer timer_;
  TimedCommandResult result_;
  std::unique_ptr<Process> process_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
