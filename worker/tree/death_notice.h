// What the guard of a dead agent tells a server, once nothing of the workers is left.
#pragma once

#include <string>
#include <vector>

namespace muster::worker {

// Bytes for a TCP server.
struct DeathNotice {
  // The server's sockaddr_in or sockaddr_in6, as it is in memory.
  std::vector<char> address;
  // What is written on a connection made for this purpose; nothing is read.
  std::string text;
};

// Connects, writes and closes, within a few seconds or not at all: the receiver must not rely on
// it. Async-signal-safe.
void Send(const DeathNotice& notice);

}  // namespace muster::worker
