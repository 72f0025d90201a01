// Connections to a store on this machine, for load generators. Any error ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace muster::bench {

// Prints "store_client: ATTEMPT: errno's text" and exits.
[[noreturn]] void Die(const std::string& attempt);

// A connection, blocking unless a method says otherwise. Movable; the destructor closes it.
class Connection {
 public:
  // Connects to 127.0.0.1.
  explicit Connection(std::uint16_t port);
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  int fd() const { return fd_; }

  // Sends all of `bytes`.
  void Send(std::string_view bytes) const;
  // Receives exactly `count` bytes.
  std::string Receive(std::size_t count) const;

  // Send or receive as much as possible without blocking; return the number of bytes, possibly 0.
  std::size_t SendSome(std::string_view bytes) const;
  std::size_t ReceiveSome(char* into, std::size_t room) const;

  // Adds to a key and returns the sum. One round trip.
  std::int64_t Add(std::string_view key, std::int64_t delta) const;

 private:
  int fd_;
};

}  // namespace muster::bench
