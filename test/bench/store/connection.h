// Connections to a store on this machine, for load generators: whatever goes wrong ends the
// program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace muster::bench {

// Prints "store_client: ATTEMPT: errno's text" and exits.
[[noreturn]] void Die(const std::string& attempt);

// One connection, blocking unless a call says otherwise. Not copied; closed with its last owner.
class Connection {
 public:
  // To 127.0.0.1.
  explicit Connection(std::uint16_t port);
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  int fd() const { return fd_; }

  // All of it.
  void Send(std::string_view bytes) const;
  // Exactly `count` bytes.
  std::string Receive(std::size_t count) const;

  // As much as the kernel takes, or has, now: 0 when that is nothing.
  std::size_t SendSome(std::string_view bytes) const;
  std::size_t ReceiveSome(char* into, std::size_t room) const;

  // Adds to a key and returns the sum: a round trip.
  std::int64_t Add(std::string_view key, std::int64_t delta) const;

 private:
  int fd_;
};

}  // namespace muster::bench
