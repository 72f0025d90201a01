// What a process or thread is doing, as the kernel reports it, for people who have to find out why
// it makes no progress.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

struct TaskState {
  pid_t id = 0;
  // The kernel's short name: "python3"; threads may have their own: "pt_main_thread".
  std::string name;
  // 'R', 'S', 'D', 'T', ... (man 5 proc, /proc/PID/stat).
  char state = '?';
  // The kernel function in which it waits: "futex_wait_queue"; empty if it does not wait or that is
  // unknown.
  std::string wchan;
  // The current system call: "futex", or "call 449" if its name is not known here; empty if it is
  // in none or that is not visible.
  std::string syscall;
  // The call's first argument if it is a small number: the descriptor, if the call takes one; -1:
  // none.
  int descriptor = -1;
  // The descriptor's target: "/data/train.bin", "pipe:[123]", "socket:[123]"; empty if unknown. Set
  // for the main thread only.
  std::string file;
  // CPU time used since it started.
  std::chrono::milliseconds processor_time{};
};

// Parses the texts of /proc/PID/stat, wchan and syscall, or a thread's; nullopt if `stat` is not
// valid. Reads nothing, so `file` is empty.
std::optional<TaskState> ParseTask(pid_t id, const std::string& stat, const std::string& wchan,
                                   const std::string& syscall);

// Describes the main thread; nullopt if there is no such process. Reads only files that never block
// on the process itself. That excludes command line, environment and memory map: reading those of a
// process that hangs in the kernel may hang as well.
std::optional<TaskState> ReadState(pid_t pid);

// All threads, the main thread first; empty if there is no such process.
std::vector<TaskState> ReadThreads(pid_t pid);

// "D (uninterruptible sleep)"; only the letter if it is unknown.
std::string StateName(char state);

// A phrase that follows a process: "is in state D (uninterruptible sleep) in nfs_wait_bit", "is in
// state t (held by a tracer), traced by process 17". Empty if there is no such process.
std::string DescribeState(pid_t pid);

// The process that traces this one, such as a debugger; 0: none.
pid_t TracerOf(pid_t pid);

// Whether a program's file name, "python3.11", is that of a Python interpreter.
inline bool IsPython(std::string_view program) {
  return program.starts_with("python") || program.starts_with("pypy");
}

// Whether the process is a Python interpreter, by the name of its program.
bool RunsPython(pid_t pid);

// The facts that decide which process of a worker gets a signal (worker/tree/signal_targets.h): its
// program, its signal dispositions and its streams.

struct ProcessTraits {
  // The program's file name without directory: "bash", "python3.11". Empty if it is not readable.
  std::string program;
  // The command line of a single-threaded Python program, otherwise empty; see ReadTraits().
  std::vector<std::string> argv;
  // One bit per signal, the lowest for signal 1.
  std::uint64_t ignored = 0;
  std::uint64_t caught = 0;
  // Streams that are pipes, by the kernel's name: "pipe:[4711]". Empty if it is not a pipe or not
  // readable.
  std::string in;
  std::string out;
  std::string err;
  // Pipes read through descriptors 3 to 9, as a shell reads the output of $(...).
  std::vector<std::string> reads;

  bool Ignores(int signal) const { return Has(ignored, signal); }
  bool Catches(int signal) const { return Has(caught, signal); }

 private:
  static bool Has(std::uint64_t set, int signal) { return (set >> (signal - 1) & 1) != 0; }
};

// Leaves unreadable fields empty: the process may have exited or belong to another user. Takes
// about 50 us.
//
// Never blocks on the process: reading its command line might, so that is read only if the process
// has one thread and is not in uninterruptible sleep. Then nothing can hold its memory map.
ProcessTraits ReadTraits(pid_t pid);

}  // namespace muster::worker
