// What /proc shows of a process that makes no progress: its threads, where they wait, and its
// connections.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "worker/hang/socket_table.h"
#include "worker/process/process_state.h"

namespace muster::worker {

struct ProcessEvidence {
  pid_t pid = 0;
  pid_t parent = 0;
  // The debugger that holds it; 0: none.
  pid_t tracer = 0;
  // The first thread first; never empty.
  std::vector<TaskState> threads;
  // Its open TCP sockets, by descriptor.
  std::vector<SocketInfo> sockets;
};

// nullopt when there is no such process. Does not wait for the process, whatever state it is in.
std::optional<ProcessEvidence> ReadEvidence(pid_t pid);

// Lines for people, each with its newline. At most kMaxShown threads and as many sockets are
// listed; the rest are counted.
inline constexpr std::size_t kMaxShown = 128;
std::string Format(const ProcessEvidence& process);

// `root` and its descendants, the root first; only dead ones are left out. Empty when `root` is
// gone.
std::vector<pid_t> TreeOf(pid_t root);

// Whether one of TreeOf(root) is stopped (SIGSTOP); one that a debugger holds is not.
bool AnyStopped(pid_t root);

}  // namespace muster::worker
