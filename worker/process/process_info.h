// What /proc tells about processes, and a way to signal exactly the one that is meant.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::worker {

// One process as it was when /proc was read.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  // Dead, and not waited for yet.
  bool zombie = false;
  // When it started, in clock ticks since the machine did. With the pid, this names one process for
  // ever, while a pid alone may be reused.
  std::uint64_t start_time = 0;
  // The kernel's short name: "python3".
  std::string name;
};

// nullopt when there is no such process.
std::optional<ProcessInfo> ReadProcess(pid_t pid);

// Every process of this machine (of this pid namespace), in no order, zombies included. What starts
// or ends meanwhile may be missing. Takes about 10 us for each process.
std::vector<ProcessInfo> ReadProcesses();

// The children of this process, zombies included, without looking at the rest of the machine's
// processes, which may be thousands. One that starts or ends meanwhile may be missing, and so is
// one that another thread has started while that thread runs: the first thread has those that it
// has started, those of threads that have ended, and the orphans that the process has adopted
// (find_new_reaper in the kernel's exit.c). To look at the others costs more than their lists: what
// the kernel then keeps of each in /proc is thrown away when the thread ends, and whoever reaps the
// process waits for that.
std::vector<ProcessInfo> ReadOwnChildren();

// Those of `all` that are among `roots`, or descend from one of them through others in `all`.
std::vector<ProcessInfo> WithDescendants(const std::vector<ProcessInfo>& all,
                                         const std::set<pid_t>& roots);

// Sends `signal` to the process that `info` is about, and never to another that has its pid now.
// False when it is gone or not ours to signal.
bool SignalProcess(const ProcessInfo& info, int signal);

// What a process has told the kernel to do with a signal.
enum class Disposition { kDefault, kIgnored, kCaught };

// nullopt when the process is gone.
std::optional<Disposition> DispositionOf(pid_t pid, int signal);

// "python3 (pid 17)".
std::string Describe(const ProcessInfo& info);

}  // namespace muster::worker
