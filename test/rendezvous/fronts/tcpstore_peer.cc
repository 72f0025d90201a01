#include "test/rendezvous/fronts/tcpstore_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

Address Loopback(bool v6, bool any, std::uint16_t port) {
  Address address;
  if (v6) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address.bytes);
    in6->sin6_family = AF_INET6;
    in6->sin6_addr = any ? in6addr_any : in6addr_loopback;
    in6->sin6_port = htons(port);
    address.size = sizeof *in6;
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&address.bytes);
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in->sin_port = htons(port);
    address.size = sizeof *in;
  }
  return address;
}

}  // namespace

LoopbackListener ListenOnLoopback(bool v6) {
  LoopbackListener listener{socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Address address = Loopback(v6, true, 0);
  if (bind(listener.fd, address.get(), address.size) != 0 || listen(listener.fd, 4096) != 0 ||
      getsockname(listener.fd, address.get(), &address.size) != 0) {
    std::abort();
  }
  listener.port = ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&address.bytes)->sin6_port
                           : reinterpret_cast<sockaddr_in*>(&address.bytes)->sin_port);
  return listener;
}

StorePeer::StorePeer(boost::asio::io_context& io, std::uint16_t port, bool v6)
    : io_(io), fd_(socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  Address address = Loopback(v6, false, port);
  if (connect(fd_, address.get(), address.size) != 0) std::abort();
  // As c10d's clients do: each Send arrives at once.
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

StorePeer::~StorePeer() {
  if (fd_ >= 0) close(fd_);
}

StorePeer::StorePeer(StorePeer&& other) noexcept
    : io_(other.io_),
      fd_(std::exchange(other.fd_, -1)),
      received_(std::move(other.received_)),
      ended_(other.ended_) {}

void StorePeer::Send(std::string_view bytes) {
  (void)RunUntil(io_, [&] {
    bytes.remove_prefix(SendSome(bytes));
    return bytes.empty() || ended_;
  });
}

std::size_t StorePeer::SendSome(std::string_view bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count =
        send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) {
      if (errno != EAGAIN) ended_ = true;
      break;
    }
    sent += static_cast<std::size_t>(count);
  }
  return sent;
}

void StorePeer::EndSending() {
  shutdown(fd_, SHUT_WR);
}

std::string StorePeer::Receive(std::size_t count) {
  (void)RunUntil(io_, [&] {
    Read();
    return received_.size() >= count || ended_;
  });
  std::string bytes = received_.substr(0, count);
  received_.erase(0, count);
  return bytes;
}

bool StorePeer::Exchange(std::string_view request, std::string_view reply) {
  Send(request);
  return Receive(reply.size()) == reply;
}

bool StorePeer::IsClosed() {
  return RunUntil(io_, [&] {
    Read();
    return ended_;
  });
}

void StorePeer::Read() {
  std::vector<char> buffer(64 << 10);
  while (!ended_) {
    const ssize_t count = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
      received_.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EAGAIN) {
      ended_ = true;
    } else {
      return;
    }
  }
}

}  // namespace muster::rendezvous
