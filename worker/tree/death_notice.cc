#include "worker/tree/death_notice.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::worker {
namespace {

// A lost SYN is sent again after one second, then after two.
constexpr int kLongestConnectMs = 5000;

bool Connects(int connection, const ServerAddress& to) {
  if (connect(connection, to.data(), to.size()) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready = {connection, POLLOUT, 0};
  return TEMP_FAILURE_RETRY(poll(&ready, 1, kLongestConnectMs)) == 1;
}

}  // namespace

ServerAddress::ServerAddress(const void* address, std::size_t size) {
  if (size > sizeof address_) return;
  std::memcpy(&address_, address, size);
  size_ = static_cast<socklen_t>(size);
}

void SendDeathNotice(const ServerAddress& to, std::string_view text) {
  if (to.size() == 0) return;
  const int connection =
      socket(to.data()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return;
  // A new connection accepts this few bytes at once.
  if (Connects(connection, to)) {
    [[maybe_unused]] const ssize_t sent = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  }
  close(connection);
}

}  // namespace muster::worker
