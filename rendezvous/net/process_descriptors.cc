#include "rendezvous/net/process_descriptors.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

// SD_LISTEN_FDS_START of sd-daemon.h.
constexpr int kFirst = 3;
// More than a daemon's addresses.
constexpr int kMost = 64;

struct Address {
  Endpoint endpoint;
  bool loopback = false;
};

// Removes the variable from the environment and returns its value; empty if it is not set.
std::string Take(const char* variable) {
  const char* const text = std::getenv(variable);
  std::string value = text == nullptr ? "" : text;
  ::unsetenv(variable);
  return value;
}

// nullopt: not a listening TCP socket.
std::optional<Address> ListeningAt(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
    return std::nullopt;
  }
  sockaddr_storage name{};
  size = sizeof name;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return std::nullopt;
  char text[INET6_ADDRSTRLEN] = "";
  Address address;
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    address.endpoint.port = ntohs(v4.sin_port);
    address.loopback = (ntohl(v4.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  } else if (name.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    address.endpoint.port = ntohs(v6.sin6_port);
    address.loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
  } else {
    return std::nullopt;
  }
  address.endpoint.host = text;
  return address;
}

}  // namespace

absl::StatusOr<GivenSockets> TakeGivenSockets() {
  const std::string count_text = Take("LISTEN_FDS");
  const std::string process = Take("LISTEN_PID");
  Take("LISTEN_FDNAMES");
  GivenSockets given;
  if (count_text.empty() || process != absl::StrCat(::getpid())) return given;
  int count = 0;
  if (!absl::SimpleAtoi(count_text, &count) || count < 0 || count > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("take the sockets that were opened for this "
                     "process: LISTEN_FDS=",
                     count_text, " is not a number up to ", kMost));
  }
  bool found_open = false;
  for (int fd = kFirst; fd < kFirst + count; ++fd) {
    const std::optional<Address> address = ListeningAt(fd);
    if (!address) {
      return absl::InvalidArgumentError(
          absl::StrCat("take the sockets that were opened for this process: descriptor ", fd,
                       " is not a listening TCP socket; a socket unit needs ListenStream=PORT"));
    }
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (given.sockets.empty() || (!found_open && !address->loopback)) given.at = address->endpoint;
    found_open = found_open || !address->loopback;
    given.sockets.push_back(fd);
  }
  return given;
}

void AnnounceReady(int fd, std::uint16_t port) {
  if (fd < 0) return;
  const std::string line = std::to_string(port) + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    spdlog::warn("write to --ready-fd={}: it has no reader", fd);
  }
  close(fd);
}

std::optional<rlim_t> RaiseDescriptorLimit() {
  constexpr rlim_t kMost = 131'072;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(limit.rlim_max, kMost);
  if (limit.rlim_cur <= before || setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return before;
}

}  // namespace muster::rendezvous
