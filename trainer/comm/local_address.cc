#include "trainer/comm/local_address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::trainer {
namespace {

// The source address of a UDP socket connected to `peer`, as text; nullopt with errno set when
// there is no route. Connecting a UDP socket only chooses a route.
std::optional<std::string> SourceAddress(const addrinfo& peer) {
  const int fd = socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_storage local{};
  socklen_t length = sizeof(local);
  auto* address = reinterpret_cast<sockaddr*>(&local);
  const bool found =
      connect(fd, peer.ai_addr, peer.ai_addrlen) == 0 && getsockname(fd, address, &length) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  char text[NI_MAXHOST];
  if (!found || getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    return std::nullopt;
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> LocalAddressTowards(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (code != 0) {
    return absl::UnavailableError(absl::StrCat("resolve ", host, ": ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* peer = found; peer != nullptr; peer = peer->ai_next) {
    if (std::optional<std::string> source = SourceAddress(*peer)) return *std::move(source);
  }
  return base::SystemFailure(absl::StatusCode::kUnavailable, "find the address that leads to",
                             host);
}

std::string InterfaceOf(const std::string& address) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> interfaces(found, freeifaddrs);
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    char text[NI_MAXHOST];
    if (getnameinfo(one->ifa_addr, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0 &&
        address == text) {
      return one->ifa_name;
    }
  }
  return "";
}

}  // namespace muster::trainer
