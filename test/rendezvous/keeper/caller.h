// Somebody who connects to a port of this machine and listens to what comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::rendezvous {

class Caller {
 public:
  // Aborts when the port refuses.
  explicit Caller(std::uint16_t port);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void Say(std::string_view text) const;
  // All that comes until the other end closes the connection, or resets it; nothing when it does
  // neither within half a minute.
  std::optional<std::string> HearAll() const;
  // Whether nothing comes, no end either, for a tenth of a second.
  bool HearsNothing() const;

 private:
  int fd_;
};

// Whether somebody listens at the port.
bool Connects(std::uint16_t port);

}  // namespace muster::rendezvous
