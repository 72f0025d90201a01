// What one process or thread is doing just now, as the kernel tells it, for people who have to find
// out why it does not go on.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::worker {

struct TaskState {
  pid_t id = 0;
  // The kernel's short name: "python3"; threads may have one of their own: "pt_main_thread".
  std::string name;
  // 'R', 'S', 'D', 'T', ... (man 5 proc, /proc/PID/stat).
  char state = '?';
  // The kernel function in which it waits: "futex_wait_queue"; empty when it waits in none, or the
  // kernel does not say.
  std::string wchan;
  // The system call that it is in: "futex", "call 449" for one we have no name for; empty when it
  // is in none, or we may not know.
  std::string syscall;
};

// Reads only what never waits for the process itself. Its command line, environment and memory map
// are not among that: who reads those of a process that hangs in the kernel may hang with it.
//
// Nothing when there is no such process. Describes its first thread.
std::optional<TaskState> ReadState(pid_t pid);

// All threads of the process, the first one first; empty when there is no such process.
std::vector<TaskState> ReadThreads(pid_t pid);

// "D (uninterruptible sleep)"; a letter that we do not know stands alone.
std::string StateName(char state);

// A phrase that follows a process: "is in state D (uninterruptible sleep) in nfs_wait_bit", "is in
// state t (held by a tracer), traced by process 17". Empty when there is no such process.
std::string DescribeState(pid_t pid);

// The process that traces this one, a debugger; 0: none.
pid_t TracerOf(pid_t pid);

// The process is a Python interpreter, going by the name of its program.
bool RunsPython(pid_t pid);

}  // namespace muster::worker
