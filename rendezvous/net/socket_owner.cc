#include "rendezvous/net/socket_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/unique_fd.h"

namespace muster::rendezvous {
namespace {

// One end: an IPv4 address also where IPv6 wraps it.
struct End {
  int family = AF_UNSPEC;
  unsigned char address[16] = {};
  in_port_t port = 0;  // in network order

  bool operator==(const End&) const = default;
  bool SameAddress(const End& other) const {
    return family == other.family && std::memcmp(address, other.address, sizeof address) == 0;
  }
  bool IsLoopback() const {
    static constexpr unsigned char kV6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return family == AF_INET ? address[0] == 127 : std::memcmp(address, kV6, sizeof kV6) == 0;
  }
};

End EndOf(const sockaddr_storage& name) {
  End end;
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    end.family = AF_INET;
    end.port = v4.sin_port;
    std::memcpy(end.address, &v4.sin_addr, 4);
  } else if (name.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    end.port = v6.sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      end.family = AF_INET;
      std::memcpy(end.address, v6.sin6_addr.s6_addr + 12, 4);
    } else {
      end.family = AF_INET6;
      std::memcpy(end.address, &v6.sin6_addr, 16);
    }
  }
  return end;
}

enum class Found { kYes, kNo, kCannotAsk };

// The connection whose own end is `from` and whose other end is `to`.
Found Look(const End& from, const End& to, inet_diag_msg* found) {
  const base::UniqueFd kernel(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (kernel.get() < 0) return Found::kCannotAsk;
  struct {
    nlmsghdr header;
    inet_diag_req_v2 body;
  } request = {};
  request.header = {.nlmsg_len = sizeof request,
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST,
                    .nlmsg_seq = 1,
                    .nlmsg_pid = 0};
  request.body.sdiag_family = static_cast<std::uint8_t>(from.family);
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0u;
  request.body.id.idiag_sport = from.port;
  request.body.id.idiag_dport = to.port;
  std::memcpy(request.body.id.idiag_src, from.address, sizeof from.address);
  std::memcpy(request.body.id.idiag_dst, to.address, sizeof to.address);
  request.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(kernel.get(), &request, sizeof request, 0) < 0) return Found::kCannotAsk;
  // The kernel has answered by the time that send() returns.
  alignas(nlmsghdr) char reply[1024];
  const ssize_t size = ::recv(kernel.get(), reply, sizeof reply, 0);
  const auto* const header = reinterpret_cast<const nlmsghdr*>(reply);
  if (size < 0 || !NLMSG_OK(header, static_cast<std::size_t>(size))) return Found::kCannotAsk;
  if (header->nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error;
    std::memcpy(&error, NLMSG_DATA(header), sizeof error);
    return error.error == -ENOENT ? Found::kNo : Found::kCannotAsk;
  }
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      header->nlmsg_len < NLMSG_LENGTH(sizeof *found)) {
    return Found::kCannotAsk;
  }
  std::memcpy(found, NLMSG_DATA(header), sizeof *found);
  return Found::kYes;
}

}  // namespace

PeerOwner OwnerOfPeer(int fd, uid_t* user) {
  *user = static_cast<uid_t>(-1);
  sockaddr_storage own = {}, other = {};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) != 0) {
    return PeerOwner::kOthers;
  }
  const End here = EndOf(own), there = EndOf(other);
  if (!there.SameAddress(here) && !there.IsLoopback()) return PeerOwner::kElsewhere;
  inet_diag_msg found = {};
  switch (Look(there, here, &found)) {
    case Found::kCannotAsk:
      return PeerOwner::kUnknown;
    case Found::kNo:
      return PeerOwner::kOthers;
    case Found::kYes:
      break;
  }
  // One that nobody holds any more is shown as root's, whoever made it.
  if (found.idiag_state != TCP_ESTABLISHED || found.idiag_inode == 0) return PeerOwner::kOthers;
  if (found.idiag_uid == 0 || found.idiag_uid == ::geteuid()) return PeerOwner::kOurs;
  *user = found.idiag_uid;
  return PeerOwner::kOthers;
}

}  // namespace muster::rendezvous
