// What the guard of a dead agent tells a server, once nothing of the workers is left.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::worker {

// Where a TCP server is. A plain value that owns no memory: it may lie in memory that processes
// share.
class ServerAddress {
 public:
  // Nowhere.
  ServerAddress() = default;
  // A sockaddr_in or sockaddr_in6 as it is in memory; anything longer is nowhere.
  ServerAddress(const void* address, std::size_t size);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address_); }
  // 0: nowhere.
  socklen_t size() const { return size_; }

 private:
  sockaddr_in6 address_{};
  socklen_t size_ = 0;
};

// Bytes for a TCP server.
struct DeathNotice {
  ServerAddress to;
  // What is written on a connection made for this purpose; nothing is read.
  std::string text;
};

// Connects, writes and closes, within a few seconds or not at all: the receiver must not rely on
// it. Async-signal-safe.
void SendDeathNotice(const ServerAddress& to, std::string_view text);

}  // namespace muster::worker
