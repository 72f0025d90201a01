// A client that connects to a port of this machine and reads what arrives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::rendezvous {

class Caller {
 public:
  // Connects; aborts if the port refuses.
  explicit Caller(std::uint16_t port);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void Say(std::string_view text) const;
  // Everything that arrives until the other end closes or resets the connection; nullopt if it does
  // neither within half a minute.
  std::optional<std::string> HearAll() const;
  // Whether nothing arrives for a tenth of a second, and the connection stays open.
  bool HearsNothing() const;

 private:
  int fd_;
};

// Whether a process listens on the port.
bool Connects(std::uint16_t port);

}  // namespace muster::rendezvous
