#include "rendezvous/keeper/knock_desk.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace muster::rendezvous {
namespace {

// epoll tells events of sockets that listen from those of callers by this.
constexpr std::uint32_t kSocket = 1u << 31;

void Await(int epoll, int fd, std::uint32_t events, std::uint32_t tag) {
  epoll_event event = {};
  event.events = events;
  event.data.u32 = tag;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// Whoever reaches an address of this machine from that very address is on it: what comes from
// elsewhere with such an address the kernel drops.
bool ComesFromThisMachine(int connection) {
  sockaddr_in6 here = {}, there = {};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  auto* const ours = reinterpret_cast<sockaddr*>(&here);
  auto* const theirs = reinterpret_cast<sockaddr*>(&there);
  if (getsockname(connection, ours, &here_size) != 0) return false;
  if (getpeername(connection, theirs, &there_size) != 0) return false;
  if (ours->sa_family != theirs->sa_family) return false;
  if (ours->sa_family == AF_INET6) {
    return std::memcmp(&here.sin6_addr, &there.sin6_addr, sizeof here.sin6_addr) == 0;
  }
  return reinterpret_cast<const sockaddr_in*>(ours)->sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in*>(theirs)->sin_addr.s_addr;
}

}  // namespace

KnockDesk::KnockDesk(std::span<const int> sockets, const KnockKey& key, KnockWord word)
    : key_(key), word_(word), socket_count_(std::min(sockets.size(), kMaxSockets)) {
  std::copy_n(sockets.begin(), socket_count_, sockets_.begin());
  for (std::size_t i = 0; i < socket_count_; ++i) {
    fcntl(sockets_[i], F_SETFL, fcntl(sockets_[i], F_GETFL) | O_NONBLOCK);
  }
}

KnockDesk::~KnockDesk() {
  Close();
}

void KnockDesk::Open() {
  if (is_open()) return;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  // Edge-triggered: when accept() fails for want of a descriptor or of memory, the next to come
  // wakes us again; else it would fail at once, for ever.
  for (std::uint32_t i = 0; i < socket_count_; ++i) {
    Await(epoll_, sockets_[i], EPOLLIN | EPOLLET, kSocket | i);
  }
}

void KnockDesk::Close() {
  if (!is_open()) return;
  for (Caller& caller : callers_) Drop(caller);
  close(epoll_);
  epoll_ = -1;
}

bool KnockDesk::Handle() {
  if (!is_open()) return false;
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint32_t tag = events[i].data.u32;
    if ((tag & kSocket) != 0) {
      Accept(sockets_[tag & ~kSocket]);
    } else if (callers_[tag].fd >= 0) {
      Hear(callers_[tag]);
    }
  }
  return room_is_asked_for_;
}

void KnockDesk::Accept(int socket) {
  for (;;) {
    const int fd = accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    // A connection that has ended in the queue is one error; those behind it are still to be taken.
    if (fd < 0 && (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)) continue;
    if (fd < 0) return;
    Caller& caller = FreePlace();
    caller.fd = fd;
    caller.number = next_number_++;
    caller.size = 0;
    // Most have spoken by the time they are accepted.
    if (Hear(caller)) {
      Await(epoll_, fd, EPOLLIN, static_cast<std::uint32_t>(&caller - callers_.data()));
    }
  }
}

KnockDesk::Caller& KnockDesk::FreePlace() {
  const auto oldest = std::min_element(callers_.begin(), callers_.end(),
                                       [](const Caller& one, const Caller& other) {
                                         if ((one.fd < 0) != (other.fd < 0)) return one.fd < 0;
                                         return one.number < other.number;
                                       });
  Drop(*oldest);
  return *oldest;
}

bool KnockDesk::Hear(Caller& caller) {
  ssize_t size;
  do {
    size = recv(caller.fd, caller.text.data() + caller.size, caller.text.size() - caller.size,
                MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) return true;
  if (size <= 0) {
    Drop(caller);
    return false;
  }
  caller.size += static_cast<std::size_t>(size);
  const std::string_view text(caller.text.data(), caller.size);
  if (word_ == KnockWord::kGone && kMakeRoom.starts_with(text)) {
    if (text != kMakeRoom) return true;
    if (ComesFromThisMachine(caller.fd)) {
      room_is_asked_for_ = true;
      return false;
    }
  }
  Knock knock;
  const KnockState state = ParseKnock(text, &knock);
  if (state == KnockState::kMore) return true;
  if (state == KnockState::kWhole) {
    // So few bytes always have room in the buffer of a new connection.
    const KnockAnswer answer = AnswerKnock(key_, knock, word_);
    send(caller.fd, answer.text.data(), answer.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    ++answered_;
  }
  Drop(caller);
  return false;
}

void KnockDesk::Drop(Caller& caller) {
  if (caller.fd < 0) return;
  close(caller.fd);
  caller.fd = -1;
}

}  // namespace muster::rendezvous
