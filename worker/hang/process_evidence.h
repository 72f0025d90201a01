// Facts from /proc about a process that makes no progress: its threads, where they wait, and its
// connections.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/process/process_state.h"

namespace muster::worker {

// The kernel's list of TCP sockets, which shows the peers of a process that stopped making
// progress.

struct SocketInfo {
  // "127.0.0.1:29500", "[::1]:29500"
  std::string local;
  std::string remote;
  // "ESTABLISHED", "LISTEN", ...
  std::string state;
  // Bytes not acknowledged by the peer, and bytes not read by the process. A hanging peer fills the
  // first, a hanging process the second.
  std::uint64_t send_queue = 0;
  std::uint64_t receive_queue = 0;

  bool operator==(const SocketInfo&) const = default;
};

// By inode number, as in /proc/PID/fd.
using SocketTable = std::map<std::uint64_t, SocketInfo>;

// Adds the sockets in the text of /proc/net/tcp or tcp6 (man 5 proc). Skips other lines.
void ParseSocketTable(std::string_view text, SocketTable* table);

// The TCP sockets of the process's network namespace; empty if there is no such process. Takes
// about 1 ms per thousand sockets, and a busy node has many.
SocketTable ReadSocketTable(pid_t pid);

// "ESTABLISHED 10.0.0.1:4711 -> 10.0.0.2:29500, to send 0, to read 64"; "LISTEN 10.0.0.1:29500".
std::string Describe(const SocketInfo& socket);

struct ProcessEvidence {
  pid_t pid = 0;
  pid_t parent = 0;
  // The debugger that holds it; 0: none.
  pid_t tracer = 0;
  // The main thread first; never empty.
  std::vector<TaskState> threads;
  // Its open TCP sockets, by descriptor.
  std::vector<SocketInfo> sockets;
};

// nullopt if there is no such process. Never blocks on the process, whatever its state.
std::optional<ProcessEvidence> ReadEvidence(pid_t pid);

// Complete lines of text for people. Lists at most kMaxShown threads and as many sockets; the rest
// are counted.
inline constexpr std::size_t kMaxShown = 128;
std::string Format(const ProcessEvidence& process);

// `root` and its live descendants, the root first. Empty if `root` is gone.
std::vector<pid_t> TreeOf(pid_t root);

// Whether one of TreeOf(root) is stopped (SIGSTOP); one held by a debugger does not count.
bool AnyStopped(pid_t root);

// The program that prints the stacks of a process, and its arguments.

// A command with a placeholder for the pid. Runs without a shell.
class StackCommand {
 public:
  // Parses "gdb -p {pid} -batch -ex 'thread apply all bt'". Words are separated by spaces; a word,
  // or a part of one, may be quoted with '...' or "...", and a backslash escapes the next
  // character, except in '...'. An error's message is a phrase that follows the command: "has a
  // quote that is not closed".
  static absl::StatusOr<StackCommand> Parse(std::string_view text);

  // The command line for this process.
  std::vector<std::string> ArgvFor(pid_t pid) const;

  // The program alone: "gdb".
  const std::string& program() const { return words_.front(); }

 private:
  explicit StackCommand(std::vector<std::string> words) : words_(std::move(words)) {}

  std::vector<std::string> words_;
};

// The first of py-spy (for Python programs), gdb and eu-stack that is installed; nullopt if none
// is. py-spy shows the Python program's lines, the others the interpreter's.
std::optional<StackCommand> PickStackCommand(
    const std::function<bool(const std::string& program)>& is_installed, bool is_python);

// Searches PATH.
bool IsInstalled(const std::string& program);

}  // namespace muster::worker
