// The TCP port of the workers' store, held until the store has it.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster::launcher {

// A socket that is bound to a port on every address of this machine but does not listen. While it
// is held, the kernel does not give the port to programs that ask for any free one; a program that
// asks for this very port with SO_REUSEADDR, as c10d's TCPStore, Gloo and every common server do,
// gets it. (Linux lets sockets with SO_REUSEADDR share a port as long as none listens:
// inet_csk_bind_conflict.)
class ReservedPort {
 public:
  // Holds `port`, or a free one for 0. The error says who is in the way:
  // "hold port 29500 for the workers: Address already in use".
  static absl::StatusOr<ReservedPort> Hold(std::uint16_t port);

  std::uint16_t port() const { return port_; }

 private:
  ReservedPort(base::UniqueFd socket, std::uint16_t port)
      : socket_(std::move(socket)), port_(port) {}

  base::UniqueFd socket_;
  std::uint16_t port_;
};

}  // namespace muster::launcher
