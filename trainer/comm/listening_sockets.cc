#include "trainer/comm/listening_sockets.h"

#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"

namespace muster::trainer {
namespace {

// A whole number that getsockopt tells of `socket`; 0 when it is no socket.
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

}  // namespace muster::trainer
