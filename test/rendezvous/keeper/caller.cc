#include "test/rendezvous/keeper/caller.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace muster::rendezvous {
namespace {

int ConnectTo(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

bool Await(int fd, int ms) {
  pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, ms) > 0;
}

}  // namespace

Caller::Caller(std::uint16_t port) : fd_(ConnectTo(port)) {
  if (fd_ < 0) std::abort();
}

Caller::~Caller() {
  close(fd_);
}

void Caller::Say(std::string_view text) const {
  (void)!send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
}

std::optional<std::string> Caller::HearAll() const {
  std::string all;
  while (Await(fd_, 30'000)) {
    char buffer[256];
    const ssize_t size = recv(fd_, buffer, sizeof buffer, 0);
    if (size <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(size));
  }
  return std::nullopt;
}

bool Caller::HearsNothing() const {
  return !Await(fd_, 100);
}

bool Connects(std::uint16_t port) {
  const int fd = ConnectTo(port);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

}  // namespace muster::rendezvous
