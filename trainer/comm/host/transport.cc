#include "trainer/comm/host/transport.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"

namespace muster::trainer {
namespace {

// Such as "pid:[4026531836]".
std::string Namespace(const std::string& kind) {
  std::array<char, 64> text;
  const ssize_t length =
      readlink(absl::StrCat("/proc/self/ns/", kind).c_str(), text.data(), text.size());
  return std::string(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

}  // namespace

std::string HostId() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat shm {};
  stat("/dev/shm", &shm);  // all 0 if it does not exist, and then no rank can use it
  // Only the segment's owner can read it.
  return absl::StrCat(boot, " ", Namespace("pid"), " ", Namespace("net"), " ", shm.st_dev, ":",
                      shm.st_ino, " ", geteuid())
      .substr(0, kHostIdBytes);
}

HostLayout LayOutHosts(const std::vector<std::string>& host_of_rank, int rank) {
  HostLayout layout{.world_size = static_cast<int>(host_of_rank.size())};
  std::map<std::string, int> hosts;  // host numbers
  std::vector<int> sizes;
  for (int other = 0; other < layout.world_size; ++other) {
    const std::string& id = host_of_rank[static_cast<std::size_t>(other)];
    const auto [host, is_new] = hosts.emplace(id, static_cast<int>(sizes.size()));
    if (is_new) {
      layout.leaders.push_back(other);
      sizes.push_back(0);
    }
    ++sizes[static_cast<std::size_t>(host->second)];
    if (other == rank) layout.host = host->second;
    if (id != host_of_rank[static_cast<std::size_t>(rank)]) continue;
    if (other == rank) layout.local_index = static_cast<int>(layout.local_ranks.size());
    layout.local_ranks.push_back(other);
  }
  layout.hosts = static_cast<int>(sizes.size());
  layout.smallest = *std::min_element(sizes.begin(), sizes.end());
  return layout;
}

namespace {

// The source address of a UDP socket connected to `peer`, as text; nullopt with errno set if there
// is no route. Connecting a UDP socket only chooses a route.
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

namespace {

// An integer option of `socket`; 0 if it is not a socket.
int OptionOf(int socket, int option) {
  int value = 0;
  socklen_t length = sizeof(value);
  return getsockopt(socket, SOL_SOCKET, option, &value, &length) == 0 ? value : 0;
}

}  // namespace

std::vector<int> ListeningSockets() {
  std::vector<int> sockets;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int fd = -1;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &fd)) continue;
    const int domain = OptionOf(fd, SO_DOMAIN);
    if ((domain == AF_INET || domain == AF_INET6) && OptionOf(fd, SO_ACCEPTCONN) != 0) {
      sockets.push_back(fd);
    }
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

void StopListening(int socket) {
  ::shutdown(socket, SHUT_RDWR);
}

const char* CommName(Comm comm) {
  switch (comm) {
    case Comm::kAuto:
      return "auto";
    case Comm::kGloo:
      return "gloo";
    case Comm::kNccl:
      return "nccl";
    case Comm::kShm:
      return "shm";
  }
  return "";
}

namespace {

// The same, regardless of Gloo.
absl::StatusOr<std::string> WhyNoGpu(Comm asked, const GpuFacts& gpus) {
  if (asked == Comm::kGloo || asked == Comm::kShm) {
    return absl::StrCat("--comm ", CommName(asked), " is given");
  }
  if (asked == Comm::kAuto && !gpus.has_nccl) return "LibTorch is built without NCCL";
  if (asked == Comm::kAuto && gpus.visible == 0) return "no GPU is visible";
  if (!gpus.has_nccl) {
    return absl::InvalidArgumentError("--comm nccl: this LibTorch was built without NCCL");
  }
  // All ranks of a host would use the first GPU.
  if (!gpus.local_rank) {
    return absl::InvalidArgumentError(
        "NCCL needs LOCAL_RANK, by which a rank knows its GPU, and it is not set: start the ranks "
        "with a launcher, or give --comm gloo");
  }
  if (*gpus.local_rank >= gpus.visible) {
    return absl::InvalidArgumentError(
        absl::StrCat("NCCL needs a GPU for local rank ", *gpus.local_rank, ", and ",
                     gpus.visible == 0   ? "none is"
                     : gpus.visible == 1 ? "1 is"
                                         : absl::StrCat(gpus.visible, " are"),
                     " visible; start at most as many ranks on a host as it has GPUs, or give "
                     "--comm gloo"));
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> WhyNotNccl(Comm asked, const GpuFacts& gpus) {
  absl::StatusOr<std::string> why = WhyNoGpu(asked, gpus);
  if (!why.ok() || why->empty() || gpus.has_gloo) return why;
  return absl::InvalidArgumentError(
      absl::StrCat("ranks without NCCL meet over Gloo, and ", *why,
                   "; this program was built without Gloo: build it with -DMUSTER_GLOO=ON and "
                   "Gloo's headers, or run it on GPUs"));
}

absl::StatusOr<CommChoice> PickComm(Comm asked, const HostLayout& layout,
                                    const std::string& shm_trouble) {
  const auto gloo = [](std::string why) { return CommChoice{Comm::kGloo, "Gloo: " + why}; };
  const auto several = [](int count, const char* what) {
    return count == 1 ? absl::StrCat("one ", what) : absl::StrCat(count, " ", what, "s");
  };
  const std::string where =
      absl::StrCat(several(layout.world_size, "rank"), " on ", several(layout.hosts, "host"));
  if (asked == Comm::kGloo) return gloo("as asked");
  if (asked == Comm::kShm && !shm_trouble.empty()) {
    return absl::UnavailableError(absl::StrCat("--comm shm: ", shm_trouble));
  }
  if (asked == Comm::kAuto) {
    if (layout.world_size == 1) return gloo("one rank, which sends nothing");
    if (layout.smallest == 1) return gloo(absl::StrCat(where, ", and on some there is only one"));
    if (!shm_trouble.empty()) return gloo(absl::StrCat("no shared memory: ", shm_trouble));
  }
  return CommChoice{Comm::kShm,
                    absl::StrCat("shared memory: ", where,
                                 layout.hosts > 1 ? ", and Gloo between the hosts" : "")};
}

}  // namespace muster::trainer
