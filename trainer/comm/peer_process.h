// Whether another process of this host is still there, and running.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace muster::trainer {

// One process, not to be mistaken for a later one with the same pid.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // in the kernel's clock ticks, from /proc/PID/stat
};

enum class ProcessState {
  kRunning,  // or asleep: it can go on by itself
  kStopped,  // by SIGSTOP or by a debugger: somebody has to let it go on
  kGone,     // ended, waited for or not, or its pid belongs to another process by now
};

// The calling process.
ProcessIdentity ThisProcess();

// Looks in /proc, which both processes must see alike (the same pid namespace). A process about
// which /proc cannot tell counts as running.
ProcessState LookAt(const ProcessIdentity& process);

}  // namespace muster::trainer
