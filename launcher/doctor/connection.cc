#include "launcher/doctor/connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/failure.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool AwaitEvents(int fd, short events, steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd wanted = {fd, events, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<long>(0, left)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

DialOutcome OutcomeOf(int error) {
  switch (error) {
    case 0:
      return DialOutcome::kConnected;
    case ECONNREFUSED:
      return DialOutcome::kRefused;
    case ETIMEDOUT:
      return DialOutcome::kSilent;
    case EHOSTUNREACH:
    case ENETUNREACH:
      return DialOutcome::kNoRoute;
    default:
      return DialOutcome::kFailed;
  }
}

// 0, or why the connection did not come about.
int Connect(int fd, const addrinfo& peer, milliseconds limit) {
  if (::connect(fd, peer.ai_addr, peer.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!AwaitWritable(fd, steady_clock::now() + limit)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Dialled Dial(const std::string& address, std::uint16_t port, milliseconds limit) {
  Dialled dialled;
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* peer = nullptr;
  if (const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &peer);
      error != 0) {
    dialled.cause = ::gai_strerror(error);
    return dialled;
  }
  const auto start = steady_clock::now();
  dialled.socket.reset(::socket(peer->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int error = dialled.socket.valid() ? Connect(dialled.socket.get(), *peer, limit) : errno;
  ::freeaddrinfo(peer);
  dialled.took = steady_clock::now() - start;
  dialled.outcome = OutcomeOf(error);
  if (error == 0) return dialled;
  dialled.cause = base::SystemCause(error);
  dialled.socket.reset();
  return dialled;
}

bool AwaitReadable(int fd, steady_clock::time_point deadline) {
  return AwaitEvents(fd, POLLIN, deadline);
}

bool AwaitWritable(int fd, steady_clock::time_point deadline) {
  return AwaitEvents(fd, POLLOUT, deadline);
}

}  // namespace muster::launcher
