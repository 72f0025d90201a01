// What a dead agent's guard sends to a server once nothing of the workers is left.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::worker {

// A TCP server's address. A plain value without pointers, so it may lie in shared memory.
class ServerAddress {
 public:
  // No server.
  ServerAddress() = default;
  // Copies a sockaddr_in or sockaddr_in6; anything longer means no server.
  ServerAddress(const void* address, std::size_t size);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address_); }
  // 0: no server.
  socklen_t size() const { return size_; }

 private:
  sockaddr_in6 address_{};
  socklen_t size_ = 0;
};

// Bytes for a TCP server.
struct DeathNotice {
  ServerAddress to;
  // Written on a new connection; nothing is read.
  std::string text;
};

// Connects, writes and closes, within a few seconds or not at all; the receiver must not rely on
// it. Async-signal-safe.
void SendDeathNotice(const ServerAddress& to, std::string_view text);

}  // namespace muster::worker
