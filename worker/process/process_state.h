// What one process or thread is doing just now, as the kernel tells it, for people who have to find
// out why it makes no progress.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::worker {

struct TaskState {
  pid_t id = 0;
  // The kernel's short name: "python3"; threads may have their own: "pt_main_thread".
  std::string name;
  // 'R', 'S', 'D', 'T', ... (man 5 proc, /proc/PID/stat).
  char state = '?';
  // The kernel function in which it waits: "futex_wait_queue"; empty when it is not waiting in one,
  // or the kernel does not say.
  std::string wchan;
  // The system call that it is in: "futex", or "call 449" for one that we have no name for; empty
  // when it is not in one, or we may not see it.
  std::string syscall;
};

// Reads only what never waits for the process itself. That excludes its command line, environment
// and memory map: whoever reads those of a process that hangs in the kernel may hang with it.
//
// nullopt when there is no such process. Describes its first thread.
std::optional<TaskState> ReadState(pid_t pid);

// All threads of the process, the first one first; empty when there is no such process.
std::vector<TaskState> ReadThreads(pid_t pid);

// "D (uninterruptible sleep)"; just the letter if we do not know it.
std::string StateName(char state);

// A phrase that follows a process: "is in state D (uninterruptible sleep) in nfs_wait_bit", "is in
// state t (held by a tracer), traced by process 17". Empty when there is no such process.
std::string DescribeState(pid_t pid);

// The process that traces this one, such as a debugger; 0: none.
pid_t TracerOf(pid_t pid);

// The process is a Python interpreter, judging by the name of its program.
bool RunsPython(pid_t pid);

}  // namespace muster::worker
