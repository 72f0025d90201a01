#include "test/bench/store/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/bench/store/wire.h"

namespace muster::bench {

void Die(const std::string& attempt) {
  std::fprintf(stderr, "store_client: %s: %s\n", attempt.c_str(), std::strerror(errno));
  std::exit(1);
}

Connection::Connection(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) Die("make a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) Die("connect");
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

void Connection::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) Die("send");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string Connection::Receive(std::size_t count) const {
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = recv(fd_, bytes.data() + done, count - done, MSG_WAITALL);
    if (got <= 0) Die("receive");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::size_t Connection::SendSome(std::string_view bytes) const {
  const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && errno != EAGAIN) Die("send");
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

std::size_t Connection::ReceiveSome(char* into, std::size_t room) const {
  const ssize_t count = recv(fd_, into, room, MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno != EAGAIN)) Die("receive");
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

std::int64_t Connection::Add(std::string_view key, std::int64_t delta) const {
  std::string request;
  EncodeAdd(key, delta, request);
  Send(request);
  const std::string reply = Receive(kNumberBytes);
  std::int64_t sum = 0;
  std::memcpy(&sum, reply.data(), sizeof sum);
  return sum;
}

}  // namespace muster::bench
