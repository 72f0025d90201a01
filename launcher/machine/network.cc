#include "launcher/machine/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "base/failure.h"

namespace muster::launcher {
namespace {

// "10.0.0.7", "fe80::1%eth0"; empty if the family is not IP.
std::string Numeric(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return "";
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST];
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

// From numeric address to interface name.
std::map<std::string, std::string> OwnAddresses() {
  std::map<std::string, std::string> own;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return own;
  for (const ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
    if (std::string text = Numeric(i->ifa_addr); !text.empty()) {
      own.emplace(std::move(text), i->ifa_name);
    }
  }
  freeifaddrs(interfaces);
  return own;
}

// The local end of a connected UDP socket: the kernel picks the route and sends nothing.
std::string LocalEndTowards(const addrinfo& peer) {
  const int fd = socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  std::string local;
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (connect(fd, peer.ai_addr, peer.ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    local = Numeric(reinterpret_cast<const sockaddr*>(&address));
  }
  close(fd);
  return local;
}

struct FreeAddrInfo {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddrInfo>;

AddressList Resolve(const rendezvous::Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port == 0 ? 1 : endpoint.port);
  if (getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found) != 0) return nullptr;
  return AddressList(found);
}

}  // namespace

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};  // with the terminating zero
  if (gethostname(name, sizeof name) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::vector<std::string> InterfaceAddresses() {
  constexpr std::size_t kMost = 64;  // the limit on the wire
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  std::set<std::string> addresses;
  for (const ifaddrs* each = found; each != nullptr && addresses.size() < kMost;
       each = each->ifa_next) {
    const std::string text = Numeric(each->ifa_addr);
    if (!text.empty() && !IsLoopback(each->ifa_addr)) addresses.insert(text);
  }
  return {addresses.begin(), addresses.end()};
}

EndpointView LookAtEndpoint(const rendezvous::Endpoint& endpoint) {
  EndpointView view;
  view.host = endpoint.host;
  AddressList addresses = Resolve(endpoint, 0);
  if (addresses == nullptr && endpoint.host == "localhost") {
    view.host = "127.0.0.1";
    addresses = Resolve({view.host, endpoint.port}, 0);
  }
  if (addresses == nullptr) return view;
  view.resolved = true;
  view.loopback = true;
  const std::map<std::string, std::string> own = OwnAddresses();
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const bool loopback = IsLoopback(a->ai_addr);
    // All of 127.0.0.0/8 is this machine, though only 127.0.0.1 is listed.
    if (loopback || own.contains(Numeric(a->ai_addr))) view.ours = true;
    view.loopback = view.loopback && loopback;
    if (view.local_address.empty()) view.local_address = LocalEndTowards(*a);
  }
  return view;
}

bool ResolvesToInterface(const std::string& host) {
  const AddressList addresses = Resolve({host, 1}, 0);
  const std::map<std::string, std::string> own = OwnAddresses();
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    if (!IsLoopback(a->ai_addr) && own.contains(Numeric(a->ai_addr))) return true;
  }
  return false;
}

std::string InterfaceWith(const std::string& address) {
  const std::map<std::string, std::string> own = OwnAddresses();
  const auto found = own.find(address);
  return found == own.end() ? "" : found->second;
}

std::optional<std::string> InterfaceForGloo(const std::string& own_name,
                                            const std::string& address) {
  if (rendezvous::IsLoopbackLiteral(address) || ResolvesToInterface(own_name)) return std::nullopt;
  const std::string local = LookAtEndpoint({address, 0}).local_address;
  return rendezvous::IsLoopbackLiteral(local) ? "" : InterfaceWith(local);
}

namespace {

// Binds `fd` to `port` on all addresses of its family; true on success.
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
  // The port has the same offset in both address structures.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<ReservedPort> ReservedPort::Hold(std::uint16_t port) {
  const std::string attempt = port == 0 ? "find a free port for the workers"
                                        : absl::StrCat("hold port ", port, " for the workers");
  // IPv6 without V6ONLY also holds the port for IPv4; a kernel without IPv6 gets IPv4 only.
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
