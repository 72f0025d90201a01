// The file-based watchdog: workers announce through a FIFO (TORCHELASTIC_TIMER_FILE) by when they
// will be done with something that may hang, and are killed if they are not.
//
// The protocol is PyTorch's (torch.distributed.elastic.timer.FileTimerClient). A request starts the
// timer of its pid and scope, or moves it when it is running; an expiration time below zero ends
// it. Unlike PyTorch's, this watchdog ends only the process that is overdue: the agent lives on to
// report and to restart.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/system_timer.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "worker/hang/timer_request.h"

namespace muster::worker {

// Lives on the loop's thread. Sleeps while no timer is running. Times are the wall clock's, as
// workers send them.
class FileWatchdog {
 public:
  struct Callbacks {
    // A timer has expired: `pid` is to get `signal`. The callee must check that the pid is a
    // worker's: anybody who can write to the FIFO may have named any pid. Runs from the loop, may
    // destroy the watchdog. All timers of the pid are over.
    std::function<void(pid_t pid, const std::string& scope, int signal)> on_expired;
    // Once, at the first line that is not a request.
    std::function<void(const std::string&)> on_warning;
  };

  // Creates the FIFO, for the owner only. An existing FIFO (left by a run that was killed) is
  // replaced. An error, which names the path, if anything else is there, or if the system fails.
  static absl::StatusOr<std::unique_ptr<FileWatchdog>> Open(boost::asio::io_context& io,
                                                            std::string path, Callbacks callbacks);
  // Removes the FIFO.
  ~FileWatchdog();
  FileWatchdog(const FileWatchdog&) = delete;
  FileWatchdog& operator=(const FileWatchdog&) = delete;

  const std::string& path() const { return path_; }

  // Ends all timers: for when the workers are gone, and their pids may come to mean others.
  void Clear();

  std::size_t running_timers() const { return timers_.size(); }
  // The number of lines that were not requests.
  std::size_t malformed_lines() const { return malformed_lines_; }

 private:
  using Time = std::chrono::system_clock::time_point;
  struct Timer {
    Time deadline;
    int signal = 0;
  };

  FileWatchdog(boost::asio::io_context& io, std::string path, base::UniqueFd fifo,
               Callbacks callbacks);
  void AwaitRequests();
  // Takes what is in the FIFO; false when it can no longer be read.
  bool ReadRequests();
  void OnBytes(std::string_view bytes);
  void OnLine(std::string_view line);
  void Apply(const TimerRequest& request);
  void AwaitNextDeadline();
  void OnDeadline();

  const std::string path_;
  const Callbacks callbacks_;
  boost::asio::posix::stream_descriptor fifo_;
  boost::asio::system_timer next_;
  // The beginning of a line.
  std::string held_;
  // The rest of a line that is too long to be a request is being skipped.
  bool skipping_ = false;
  std::map<std::pair<pid_t, std::string>, Timer> timers_;
  std::size_t malformed_lines_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
