#include "worker/tree/death_notice.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace muster::worker {
namespace {

// A SYN that is lost is sent again after one second, then after two.
constexpr int kLongestConnectMs = 5000;

bool Connects(int connection, const DeathNotice& notice) {
  const auto* const address = reinterpret_cast<const sockaddr*>(notice.address.data());
  if (connect(connection, address, static_cast<socklen_t>(notice.address.size())) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready = {connection, POLLOUT, 0};
  int count;
  do {
    count = poll(&ready, 1, kLongestConnectMs);
  } while (count < 0 && errno == EINTR);
  return count == 1;
}

}  // namespace

void Send(const DeathNotice& notice) {
  if (notice.address.empty()) return;
  const int family = reinterpret_cast<const sockaddr*>(notice.address.data())->sa_family;
  const int connection = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return;
  // A new connection takes so few bytes at once, or it is not one.
  if (Connects(connection, notice)) {
    [[maybe_unused]] const ssize_t sent =
        send(connection, notice.text.data(), notice.text.size(), MSG_NOSIGNAL);
  }
  close(connection);
}

}  // namespace muster::worker
