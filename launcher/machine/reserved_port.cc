#include "launcher/machine/reserved_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::launcher {
namespace {

// Binds `fd` to `port` on every address of its family; true if that worked.
bool Bind(int fd, int family, std::uint16_t port) {
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::uint16_t BoundPort(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  // The port is at the same place in both families' addresses.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<ReservedPort> ReservedPort::Hold(std::uint16_t port) {
  const std::string attempt = port == 0 ? "find a free port for the workers"
                                        : absl::StrCat("hold port ", port, " for the workers");
  // IPv6 without V6ONLY holds the port for IPv4, too; a kernel without IPv6 has only the latter.
  for (const int family : {AF_INET6, AF_INET}) {
    base::UniqueFd held(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!held.valid()) continue;
    if (Bind(held.get(), family, port)) {
      const std::uint16_t bound = BoundPort(held.get());
      return ReservedPort(std::move(held), bound);
    }
    const int error = errno;
    if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) {
      return base::SystemFailure(absl::StatusCode::kUnavailable, attempt, "", error);
    }
  }
  return base::Failure(absl::StatusCode::kUnavailable, attempt, "",
                       "this machine has neither IPv6 nor IPv4");
}

}  // namespace muster::launcher
