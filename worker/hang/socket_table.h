// The kernel's list of TCP sockets, to tell with whom a process was communicating when it stopped
// making progress.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::worker {

struct SocketInfo {
  // "127.0.0.1:29500", "[::1]:29500"
  std::string local;
  std::string remote;
  // "ESTABLISHED", "LISTEN", ...
  std::string state;
  // Bytes that the other side has not acknowledged, and bytes that the process has not read. A
  // hanging peer shows in the first, a hanging process in the second.
  std::uint64_t send_queue = 0;
  std::uint64_t receive_queue = 0;

  bool operator==(const SocketInfo&) const = default;
};

// By inode number, as /proc/PID/fd shows it.
using SocketTable = std::map<std::uint64_t, SocketInfo>;

// Adds what the text of /proc/net/tcp or tcp6 lists (man 5 proc). Other lines are skipped.
void ParseSocketTable(std::string_view text, SocketTable* table);

// The TCP sockets of the process's network namespace; empty when there is no such process. A busy
// node has many sockets: this takes about 1 ms for each thousand.
SocketTable ReadSocketTable(pid_t pid);

// "ESTABLISHED 10.0.0.1:4711 -> 10.0.0.2:29500, to send 0, to read 64"; "LISTEN 10.0.0.1:29500".
std::string Describe(const SocketInfo& socket);

}  // namespace muster::worker
