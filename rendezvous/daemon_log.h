// Where a daemon's log goes: to its stderr, through a thread that may wait for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::rendezvous {

// A stderr that nobody reads (a terminal stopped by Ctrl-S, a pipe whose reader stands still, a
// file on an unreachable server) must not stop the daemon: every agent's lease would run out.
// O_NONBLOCK is no way out, as it would be set for everybody who shares that stderr. So lines are
// written to a pipe of our own, which holds about a megabyte, and a thread that does nothing else
// copies them from there. While the pipe is full, lines are lost; their number is written in their
// place.
//
// Any thread may log. A process has one of these, and creates it after its last fork. SIGPIPE must
// be ignored. What is in the pipe when the process is killed is lost.
class DaemonLog {
 public:
  // From now on what spdlog's default logger is given goes to `fd`, which is borrowed for the life
  // of the process, under that name.
  DaemonLog(const std::string& name, int fd);
  // Calls End().
  ~DaemonLog();
  DaemonLog(const DaemonLog&) = delete;
  DaemonLog& operator=(const DaemonLog&) = delete;

  // A line as it is, with its newline; beyond 4096 bytes it is cut.
  void Write(std::string_view line);

  // The number of lost lines that have not been reported yet.
  std::uint64_t missing() const;

  // Returns when everything is written, or after a second if that is not possible. What is logged
  // afterwards is lost.
  void End();

 private:
  class Sink;
  const std::shared_ptr<Sink> sink_;
};

// Where a keeper's log goes: to its stderr, written by the keeper's only thread, which must not
// block there.

// From now on what spdlog's default logger is given goes to `fd`, under that name. While nobody
// reads what is written (a terminal stopped by Ctrl-S, a pipe whose reader stands still), lines are
// lost, and their number is written before the next line: waiting would leave agents without an
// answer. There are few lines, so there is no buffer, and no thread for one.
void UseKeeperLog(const std::string& name, int fd);

}  // namespace muster::rendezvous
