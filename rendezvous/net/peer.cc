#include "rendezvous/net/peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <spdlog/spdlog.h>

#include "base/unique_fd.h"

namespace muster::rendezvous {

Peer ParsePeer(std::string_view text) {
  const std::size_t scheme = text.find(':');
  const std::size_t colon = text.rfind(':');
  if (scheme == std::string_view::npos || colon <= scheme) return {};
  const std::string_view address = text.substr(scheme + 1, colon - scheme - 1);
  Peer peer;
  for (std::size_t i = 0; i < address.size(); ++i) {
    if (address.substr(i, 3) == "%5B" || address.substr(i, 3) == "%5D") {
      i += 2;
    } else if (address[i] != '[' && address[i] != ']') {
      peer.address += address[i];
    }
  }
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), peer.port);
  return peer;
}

using boost::asio::ip::address;
using boost::asio::ip::tcp;

address HostAddress(const address& given) {
  if (!given.is_v6()) return given;
  boost::asio::ip::address_v6 v6 = given.to_v6();
  if (v6.is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6);
  }
  v6.scope_id(0);
  return v6;
}

std::optional<address> ParseHostAddress(const std::string& text) {
  boost::system::error_code error;
  // Drop the zone: it may name an interface that this machine does not have.
  const address parsed = boost::asio::ip::make_address(text.substr(0, text.find('%')), error);
  if (error) return std::nullopt;
  return HostAddress(parsed);
}

address HostLine(const address& host) {
  if (host.is_v4()) return host;
  boost::asio::ip::address_v6::bytes_type bytes = host.to_v6().to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), 0);
  return boost::asio::ip::address_v6(bytes);
}

tcp::endpoint HostEndpoint(const tcp::endpoint& endpoint) {
  return {HostAddress(endpoint.address()), endpoint.port()};
}

std::optional<tcp::endpoint> HostEndpoint(const Peer& peer) {
  const std::optional<address> host = ParseHostAddress(peer.address);
  if (!host) return std::nullopt;
  return tcp::endpoint(*host, peer.port);
}

namespace {

// One end of the connection, by getsockname or getpeername; nullopt: it has none.
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

// Looks up the connection from `from` to `to`.
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
  // The kernel has answered by the time send() returns.
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
  // A socket that no process holds any more is reported as root's. For a missing one the kernel
  // reports the listener.
  if (found.idiag_state == TCP_LISTEN || found.idiag_inode == 0) return PeerOwner::kOthers;
  if (found.idiag_uid == 0 || found.idiag_uid == ::geteuid()) return PeerOwner::kOurs;
  *user = found.idiag_uid;
  return PeerOwner::kOthers;
}

bool OwnUsers::Allow(boost::asio::ip::tcp::socket& connection) {
  uid_t user = 0;
  if (OwnerOfPeer(connection.native_handle(), &user) != PeerOwner::kOthers) return true;
  if (user != static_cast<uid_t>(-1) && !std::exchange(told_, true)) {
    spdlog::warn("the store refused a process of another user of this machine (user id {}); {}",
                 user, remedy_);
  }
  return false;
}

}  // namespace muster::rendezvous
