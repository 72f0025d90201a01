// The kernel's list of TCP sockets, to tell with whom a process was talking when it came to a halt.
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
  // Bytes that the other side has not acknowledged, and bytes that the process has not read. A peer
  // that hangs shows in the first, a process that hangs in the second.
  std::uint64_t send_queue = 0;
  std::uint64_t receive_queue = 0;

  bool operator==(const SocketInfo&) const = default;
};

// By inode number, the one that /proc/PID/fd shows.
using SocketTable = std::map<std::uint64_t, SocketInfo>;

// Adds what the text of /proc/net/tcp or tcp6 lists (man 5 proc). Lines that are none are passed
// over.
void ParseSocketTable(std::string_view text, SocketTable* table);

// The TCP sockets of the process's network namespace; empty when there is no such process. Sockets
// of a busy node are many: about 1 ms for each thousand.
SocketTable ReadSocketTable(pid_t pid);

// "ESTABLISHED 10.0.0.1:4711 -> 10.0.0.2:29500, to send 0, to read 64"; "LISTEN 10.0.0.1:29500".
std::string Describe(const SocketInfo& socket);

}  // namespace muster::worker
