#include "launcher/agent/early_connections.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace muster::launcher {
namespace {

// More workers than a job usually has on all of its nodes.
constexpr std::size_t kMost = 4096;
// How many are looked at for one newcomer: a flood of them must not take the loop's time, so that a
// look costs about as much as the newcomer does itself.
constexpr std::size_t kLook = 256;

std::size_t Limit() {
  // Asked each time, as it may be changed from outside (prlimit).
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<rlim_t>(kMost, limit.rlim_cur / 4);
}

}  // namespace

void EarlyConnections::Add(Socket connection) {
  const std::size_t limit = Limit();
  if (waiting_.size() >= limit) DropSomeThatHungUp();
  if (waiting_.size() >= limit) return;
  waiting_.push_back(std::move(connection));
}

std::vector<EarlyConnections::Socket> EarlyConnections::Take() {
  std::vector<Socket> live;
  for (Socket& connection : std::exchange(waiting_, {})) {
    pollfd poll_for = {connection.native_handle(), POLLRDHUP, 0};
    if (poll(&poll_for, 1, 0) == 0) live.push_back(std::move(connection));
  }
  return live;
}

void EarlyConnections::DropSomeThatHungUp() {
  if (next_look_ >= waiting_.size()) next_look_ = 0;
  const std::size_t count = std::min(kLook, waiting_.size() - next_look_);
  pollfd looks[kLook];
  for (std::size_t i = 0; i < count; ++i) {
    looks[i] = {waiting_[next_look_ + i].native_handle(), POLLRDHUP, 0};
  }
  poll(looks, count, 0);
  const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(next_look_);
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  std::size_t at = 0;
  const auto kept =
      std::remove_if(first, last, [&](const Socket&) { return looks[at++].revents != 0; });
  next_look_ += static_cast<std::size_t>(kept - first);
  waiting_.erase(kept, last);
}

}  // namespace muster::launcher
