// Whether another process on this host still exists and is running.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace muster::trainer {

// Identifies a process, even if its pid is reused later.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // in the kernel's clock ticks, from /proc/PID/stat
};

enum class ProcessState {
  kRunning,  // or asleep: can continue by itself
  kStopped,  // by SIGSTOP or a debugger: someone has to continue it
  kGone,     // ended, even if not reaped yet, or its pid now belongs to another process
};

// The identity of the calling process.
ProcessIdentity ThisProcess();

// Looks the process up in /proc; both processes must be in the same pid namespace. If /proc cannot
// be read, a process that exists counts as running.
ProcessState LookAt(const ProcessIdentity& process);

}  // namespace muster::trainer
