// What the guard of a dead agent tells somebody, once nothing of the workers is left.
#pragma once

#include <string>
#include <vector>

namespace muster::worker {

// Bytes for a TCP server.
struct DeathNotice {
  // The server's sockaddr_in or sockaddr_in6, as it lies in memory.
  std::vector<char> address;
  // What is written on a connection that is made for it; nothing is read.
  std::string text;
};

// Connects, writes and closes, within some seconds or not at all: whoever depends on it must bear
// that it does not come. Async-signal-safe.
void Send(const DeathNotice& notice);

}  // namespace muster::worker
