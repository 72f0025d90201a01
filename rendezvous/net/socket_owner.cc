#include "rendezvous/net/socket_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include <boost/asio/ip/tcp.hpp>

#include "base/unique_fd.h"
#include "rendezvous/net/host_address.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// One end of the connection, as getsockname or getpeername has it; nullopt: it has none.
template <typename GetName>
std::optional<tcp::endpoint> EndOf(int fd, GetName get_name) {
  tcp::endpoint end;
  auto size = static_cast<socklen_t>(end.capacity());
  if (get_name(fd, end.data(), &size) != 0) return std::nullopt;
  end.resize(size);
  return HostEndpoint(end);
}

void Write(const boost::asio::ip::address& address, __be32 (&words)[4]) {
  const auto copy = [&words](const auto& bytes) { std::memcpy(words, bytes.data(), bytes.size()); };
  if (address.is_v4()) {
    copy(address.to_v4().to_bytes());
  } else {
    copy(address.to_v6().to_bytes());
  }
}

enum class Found { kYes, kNo, kCannotAsk };

// The connection whose own end is `from` and whose other end is `to`.
Found Look(const tcp::endpoint& from, const tcp::endpoint& to, inet_diag_msg* found) {
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
  request.body.sdiag_family = from.address().is_v4() ? AF_INET : AF_INET6;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0u;
  request.body.id.idiag_sport = htons(from.port());
  request.body.id.idiag_dport = htons(to.port());
  Write(from.address(), request.body.id.idiag_src);
  Write(to.address(), request.body.id.idiag_dst);
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
  const std::optional<tcp::endpoint> here = EndOf(fd, ::getsockname);
  const std::optional<tcp::endpoint> there = EndOf(fd, ::getpeername);
  if (!here || !there) return PeerOwner::kOthers;
  if (there->address() != here->address() && !there->address().is_loopback()) {
    return PeerOwner::kElsewhere;
  }
  inet_diag_msg found = {};
  switch (Look(*there, *here, &found)) {
    case Found::kCannotAsk:
      return PeerOwner::kUnknown;
    case Found::kNo:
      return PeerOwner::kOthers;
    case Found::kYes:
      break;
  }
  // One that nobody holds any more is shown as root's, whoever made it. Where there is none the
  // kernel shows who listens there.
  if (found.idiag_state == TCP_LISTEN || found.idiag_inode == 0) return PeerOwner::kOthers;
  if (found.idiag_uid == 0 || found.idiag_uid == ::geteuid()) return PeerOwner::kOurs;
  *user = found.idiag_uid;
  return PeerOwner::kOthers;
}

}  // namespace muster::rendezvous
