// How one worker failed, as the agent saw it, for people and for the rendezvous.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "worker/exit_status.h"

namespace muster::worker {

// Shells' exit codes for a program that was never run; FailureRecord uses them for workers that
// could not be started.
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

struct FailureRecord {
  int rank = 0;
  int local_rank = 0;
  // 0 when the worker could not be started.
  pid_t pid = 0;
  // The exit code, or the signal. A worker that could not be started has exit code 126 or 127.
  ExitStatus status;
  // One phrase that follows "rank 3": "exited with code 3", "was killed by SIGSEGV (core dumped)",
  // "was killed by SIGKILL, by the kernel's out-of-memory killer (memory limit 512 MiB of cgroup
  // /x)", "was killed by muster (SIGKILL), as its watchdog timer 'step' expired", "could not be
  // started:
  // ./train: No such file or directory", "was killed by SIGKILL as its node had lost touch with the
  // rendezvous".
  std::string what;
  // It was killed, or not started, because its node had lost touch with the rendezvous
  // (WorkerGroup::SetDeadline); the worker itself did not fail.
  bool lost_touch = false;
  // The last bytes that it, and what it started, wrote to stderr, beginning with a whole line, at
  // most kMaxTail; empty when stderr went straight to the console.
  std::string stderr_tail;
  // The log file to look at, stderr's before stdout's; empty when there is none.
  std::string log_path;
  // The worker's error file, if it wrote one.
  std::string error_file;
  // When we saw that it had ended, or killed it, or could not start it.
  std::chrono::steady_clock::time_point failed_at{};

  bool operator==(const FailureRecord&) const = default;
};

// The phrase of FailureRecord::what for a process that ran: "exited with code 3".
std::string DescribeExit(const ExitStatus& status);

}  // namespace muster::worker
