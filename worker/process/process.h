// A process that we started, from the moment it runs until its exit status is known.
#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "worker/exit_status.h"
#include "worker/process/spawn.h"

namespace muster::worker {

// Watches the exit through the process's pidfd and waits for this one process only: others in our
// program may have children of their own. Lives on the loop's thread.
class Process {
 public:
  using ExitCallback = std::function<void(const ExitStatus&)>;

  // What becomes of the process's number when it has ended.
  enum class Number {
    kFreed,
    kKept,  // it is nobody else's, nor is its group's, until this object is destroyed or abandoned
  };

  // Takes over a process from Spawn(). `on_exit` runs once, from the loop; it may destroy the
  // Process.
  Process(boost::asio::io_context& io, Spawned spawned, ExitCallback on_exit,
          Number number = Number::kFreed);
  // Sends SIGKILL to the process and its group if it is still running, and waits for its end, at
  // most one second.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }

  // To the process and every member of its group. No effect when it has ended and its number is
  // freed: that may then come to mean another group.
  void SignalGroup(int signal);

  // It is already dead, even if the callback has not been called yet.
  bool HasEnded();

  // Gives it up: the callback is not called, and the destructor does not wait for its end.
  void Abandon();

 private:
  void WatchExit();
  // Takes the exit status, if it is available.
  bool Collect(ExitStatus* status);
  void OnPidfdReadable();

  const pid_t pid_;
  ExitCallback on_exit_;
  boost::asio::posix::stream_descriptor pidfd_;
  boost::asio::steady_timer retry_;
  const Number number_;
  bool running_ = true;
  bool has_number_ = true;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
