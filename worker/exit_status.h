// How a process ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "base/text.h"

namespace muster::worker {

struct ExitStatus {
  // The argument of exit(); meaningless if `signal` is set.
  int exit_code = 0;
  // The signal that killed it, or 0.
  int signal = 0;
  // The signal left a core dump.
  bool core_dumped = false;

  bool Succeeded() const { return signal == 0 && exit_code == 0; }

  bool operator==(const ExitStatus&) const = default;
};

// How one worker failed, as its agent saw it: for people and for the rendezvous.

// A shell's exit codes for a program that could not be run; FailureRecord uses them for workers
// that could not be started.
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

struct FailureRecord {
  int rank = 0;
  int local_rank = 0;
  // 0 if the worker could not be started.
  pid_t pid = 0;
  // The exit code or the signal. The exit code is 126 or 127 if the worker could not be started.
  ExitStatus status;
  // A phrase that follows "rank 3": "exited with code 3", "was killed by SIGSEGV (core dumped)",
  // "was killed by SIGKILL, by the kernel's out-of-memory killer (memory limit 512 MiB of cgroup
  // /x)", "was killed by muster (SIGKILL), as its watchdog timer 'step' expired", "could not be
  // started: ./train: No such file or directory", "was killed by SIGKILL as its node had lost touch
  // with the rendezvous".
  std::string what;
  // Killed or not started because its node had lost touch with the rendezvous
  // (WorkerGroup::SetDeadline); the worker itself did not fail.
  bool lost_touch = false;
  // All workers of the group exited with the same code; known only if the group waited for that
  // (WorkerGroupOptions::may_be_end_of_all).
  bool alike = false;
  // The last bytes of stderr, written by the worker and its children, starting with a whole line,
  // at most kMaxTail. Empty if stderr goes straight to the console.
  std::string stderr_tail;
  // The log file to look at, stderr's before stdout's; empty if there is none.
  std::string log_path;
  // The worker's error file, if it wrote one.
  std::string error_file;
  // When its exit was noticed, or it was killed, or failed to start.
  std::chrono::steady_clock::time_point failed_at{};

  bool operator==(const FailureRecord&) const = default;
};

// The phrase of FailureRecord::what for a process that ran: "exited with code 3".
inline std::string DescribeExit(const ExitStatus& status) {
  return absl::StrCat(base::ExitPhrase(status.exit_code, status.signal),
                      status.core_dumped ? " (core dumped)" : "");
}

// The result of a program that is run for its output (process.h).

struct TimedCommandResult {
  // nullopt if it survived SIGKILL (hung in the kernel) and was abandoned.
  std::optional<ExitStatus> status;
  // It exceeded its time limit and was killed.
  bool timed_out = false;
  // Its stdout and stderr, interleaved as written.
  std::string output;
  // There was more output than output_limit.
  bool output_cut = false;
};

}  // namespace muster::worker
