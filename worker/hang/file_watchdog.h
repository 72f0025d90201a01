// The file-based watchdog: workers announce through a FIFO (TORCHELASTIC_TIMER_FILE) when they will
// have finished something that may hang, and are killed if they have not.
//
// The protocol is PyTorch's (torch.distributed.elastic.timer.FileTimerClient). A request starts or
// moves the timer of its pid and scope; a negative expiration time ends it. Unlike PyTorch's, this
// watchdog kills only the overdue process: the agent survives to report and restart.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"

namespace muster::worker {

// A worker's request in the watchdog's FIFO: one line of JSON per timer that it starts, moves or
// ends.

// As torch.distributed.elastic.timer.FileTimerRequest.to_json writes it: {"version": 1, "pid": 17,
// "scope_id": "step", "expiration_time": 1700000000.5, "signal": 9}.
struct TimerRequest {
  pid_t pid = 0;
  // Identifies the timer within the process.
  std::string scope;
  // Unix time in seconds; negative: the timer ends.
  double expiration_time = 0;
  // Sent to the process when the timer expires; 0 or less: none.
  int signal = 0;

  bool IsRelease() const { return expiration_time < 0; }

  bool operator==(const TimerRequest&) const = default;
};

// nullopt if the line is not a request. Numbers may be given as text; a missing signal means
// SIGKILL, as in PyTorch.
std::optional<TimerRequest> ParseTimerRequest(std::string_view line);

// Lives on the loop's thread. Sleeps while no timer is running. Times are the workers' wall clock.
class FileWatchdog {
 public:
  struct Callbacks {
    // A timer has expired: send `signal` to `pid`. The callee must check that the pid is a
    // worker's: anyone who can write to the FIFO may name any pid. Runs from the loop, may destroy
    // the watchdog. All timers of the pid are cleared.
    std::function<void(pid_t pid, const std::string& scope, int signal)> on_expired;
    // Called once, for the first line that is not a request.
    std::function<void(const std::string&)> on_warning;
  };

  // Creates the FIFO with mode 0600. Replaces an existing FIFO, left by a killed run. An error
  // names the path: something else is there, or the system failed.
  static absl::StatusOr<std::unique_ptr<FileWatchdog>> Open(boost::asio::io_context& io,
                                                            std::string path, Callbacks callbacks);
  // Removes the FIFO.
  ~FileWatchdog();
  FileWatchdog(const FileWatchdog&) = delete;
  FileWatchdog& operator=(const FileWatchdog&) = delete;

  const std::string& path() const { return path_; }

  // Clears all timers; call it when the workers are gone, as their pids may be reused.
  void Clear();

  // While the workers are stopped with the run, no timer expires; after Resume() each has as much
  // time left as before.
  void Suspend();
  void Resume();

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
  // Reads what is in the FIFO; false if it can no longer be read.
  bool ReadRequests();
  void OnBytes(std::string_view bytes);
  void OnLine(std::string_view line);
  void Apply(const TimerRequest& request);
  void AwaitNextDeadline();
  void OnDeadline();

  const std::string path_;
  const Callbacks callbacks_;
  boost::asio::posix::stream_descriptor fifo_;
  base::BasicTimer<std::chrono::system_clock> next_;
  // The start of an incomplete line.
  std::string held_;
  // Skipping the rest of a line that is too long for a request.
  bool skipping_ = false;
  std::map<std::pair<pid_t, std::string>, Timer> timers_;
  std::optional<Time> suspended_at_;
  std::size_t malformed_lines_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
