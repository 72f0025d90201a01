#include "rendezvous/keeper/port_holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

#include "base/failure.h"
#include "base/program.h"

namespace muster::rendezvous {
namespace {

struct Sockets {
  std::array<int, ProbeResponder::kMaxSockets> fds;
  std::size_t count = 0;

  std::span<const int> span() const { return {fds.data(), count}; }
};

std::int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1'000'000;
}

void AwaitEndOf(pid_t parent) {
  pollfd ended = {static_cast<int>(syscall(SYS_pidfd_open, parent, 0)), POLLIN, 0};
  // If the parent has died already, its pid may belong to another process.
  if (getppid() != parent) {
    close(ended.fd);
    return;
  }
  // Without a way to see its parent die, it must never report that.
  if (ended.fd < 0) _exit(1);
  TEMP_FAILURE_RETRY(poll(&ended, 1, -1));
  close(ended.fd);
}

[[noreturn]] void Main(pid_t parent, const Sockets& sockets, const ProbeKey& key,
                       const std::atomic<std::uint32_t>& attending) {
  CloseAllBut(sockets.span());
  AwaitEndOf(parent);

  ProbeResponder desk(sockets.span(), key, ProbeWord::kGone);
  desk.Open();
  std::int64_t end = NowMs() + std::chrono::milliseconds(PortHolder::kStay).count();
  for (;;) {
    if (desk.answered() >= attending) {
      end = std::min(end, NowMs() + std::chrono::milliseconds(PortHolder::kLinger).count());
    }
    const std::int64_t left = end - NowMs();
    if (left <= 0) break;
    pollfd knocking = {desk.fd(), POLLIN, 0};
    if (poll(&knocking, 1, static_cast<int>(left)) <= 0) continue;
    if (desk.Handle()) break;
  }
  // A process that asked for the port waits for its connection to end, which follows this.
  for (const int fd : sockets.span()) close(fd);
  _exit(0);
}

// The assumed limit if descriptors cannot be listed; the loop then takes a few milliseconds.
constexpr rlim_t kManyDescriptors = 1 << 16;

bool IsKept(std::span<const int> kept, int fd) {
  return std::find(kept.begin(), kept.end(), fd) != kept.end();
}

// Closes [first, end).
bool CloseRange(unsigned first, unsigned end) {
  return first >= end || syscall(SYS_close_range, first, end - 1, 0) == 0;
}

void CloseUpToLimitBut(std::span<const int> kept) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min(limit.rlim_cur, kManyDescriptors));
  for (int fd = 0; fd < end; ++fd) {
    if (!IsKept(kept, fd)) close(fd);
  }
}

// Marks epoll events of listening sockets, as opposed to callers.
constexpr std::uint32_t kSocket = 1u << 31;

void Await(int epoll, int fd, std::uint32_t events, std::uint32_t tag) {
  epoll_event event = {};
  event.events = events;
  event.data.u32 = tag;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// A peer that uses one of this machine's addresses is on it: the kernel drops such packets from
// elsewhere.
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

absl::StatusOr<PortHolder> PortHolder::Start(std::span<const int> sockets, const ProbeKey& key) {
  Sockets kept;
  kept.count = std::min(sockets.size(), kept.fds.size());
  std::copy_n(sockets.begin(), kept.count, kept.fds.begin());
  std::sort(kept.fds.begin(), kept.fds.begin() + kept.count);
  const pid_t parent = getpid();
  void* const memory = mmap(nullptr, sizeof(std::atomic<std::uint32_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return base::SystemFailure(absl::StatusCode::kUnavailable, "mmap");
  }
  auto* const attending = new (memory) std::atomic<std::uint32_t>(0);

  const absl::StatusOr<pid_t> pid =
      base::StartCompanion("last-word", [&] { Main(parent, kept, key, *attending); });
  if (!pid.ok()) {
    munmap(memory, sizeof *attending);
    return pid.status();
  }
  return PortHolder(*pid, attending);
}

PortHolder::~PortHolder() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  base::Reap(pid_);
  munmap(attending_, sizeof *attending_);
}

void CloseListedBut(std::span<const int> kept) {
  const int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return CloseUpToLimitBut(kept);
  // opendir would allocate.
  alignas(dirent64) char entries[4096];
  bool closed_some = true;
  // Closing entries while reading the list may hide later ones, so repeat.
  while (closed_some) {
    closed_some = false;
    lseek(list, 0, SEEK_SET);
    long size;
    while ((size = syscall(SYS_getdents64, list, entries, sizeof entries)) > 0) {
      for (long at = 0; at < size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
        at += entry->d_reclen;
        // "." and ".." are not numbers.
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        const int fd = std::atoi(entry->d_name);
        if (fd == list || IsKept(kept, fd)) continue;
        closed_some = close(fd) == 0 || closed_some;
      }
    }
  }
  close(list);
}

void CloseAllBut(std::span<const int> kept) {
  unsigned first = 0;
  for (const int fd : kept) {
    if (!CloseRange(first, static_cast<unsigned>(fd))) return CloseListedBut(kept);
    first = static_cast<unsigned>(fd) + 1;
  }
  if (!CloseRange(first, UINT_MAX)) CloseListedBut(kept);
}

ProbeResponder::ProbeResponder(std::span<const int> sockets, const ProbeKey& key, ProbeWord word)
    : key_(key), word_(word), socket_count_(std::min(sockets.size(), kMaxSockets)) {
  std::copy_n(sockets.begin(), socket_count_, sockets_.begin());
  for (std::size_t i = 0; i < socket_count_; ++i) {
    fcntl(sockets_[i], F_SETFL, fcntl(sockets_[i], F_GETFL) | O_NONBLOCK);
  }
}

ProbeResponder::~ProbeResponder() {
  Close();
}

void ProbeResponder::Open() {
  if (is_open()) return;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  // Edge-triggered: if accept() fails for lack of a descriptor or memory, the next connection wakes
  // us again; level-triggered it would fail in a busy loop.
  for (std::uint32_t i = 0; i < socket_count_; ++i) {
    Await(epoll_, sockets_[i], EPOLLIN | EPOLLET, kSocket | i);
  }
}

void ProbeResponder::Close() {
  if (!is_open()) return;
  for (Caller& caller : callers_) Drop(caller);
  close(epoll_);
  epoll_ = -1;
}

bool ProbeResponder::Handle() {
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

void ProbeResponder::Accept(int socket) {
  for (;;) {
    const int fd = accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    // A connection that ended in the queue is one error; there may be others behind it.
    if (fd < 0 && (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)) continue;
    if (fd < 0) return;
    Caller& caller = FreePlace();
    caller.fd = fd;
    caller.number = next_number_++;
    caller.size = 0;
    // Most have sent their probe by the time they are accepted.
    if (Hear(caller)) {
      Await(epoll_, fd, EPOLLIN, static_cast<std::uint32_t>(&caller - callers_.data()));
    }
  }
}

ProbeResponder::Caller& ProbeResponder::FreePlace() {
  const auto oldest = std::min_element(callers_.begin(), callers_.end(),
                                       [](const Caller& one, const Caller& other) {
                                         if ((one.fd < 0) != (other.fd < 0)) return one.fd < 0;
                                         return one.number < other.number;
                                       });
  Drop(*oldest);
  return *oldest;
}

bool ProbeResponder::Hear(Caller& caller) {
  const ssize_t size = TEMP_FAILURE_RETRY(recv(caller.fd, caller.text.data() + caller.size,
                                               caller.text.size() - caller.size, MSG_DONTWAIT));
  if (size < 0 && errno == EAGAIN) return true;
  if (size <= 0) {
    Drop(caller);
    return false;
  }
  caller.size += static_cast<std::size_t>(size);
  const std::string_view text(caller.text.data(), caller.size);
  if (word_ == ProbeWord::kGone && kMakeRoom.starts_with(text)) {
    if (text != kMakeRoom) return true;
    if (ComesFromThisMachine(caller.fd)) {
      room_is_asked_for_ = true;
      return false;
    }
  }
  LivenessProbe probe;
  const ProbeState state = ParseProbe(text, &probe);
  if (state == ProbeState::kMore) return true;
  if (state == ProbeState::kWhole) {
    // This few bytes always fit into the buffer of a new connection.
    const ProbeAnswer answer = AnswerProbe(key_, probe, word_);
    send(caller.fd, answer.text.data(), answer.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    ++answered_;
  }
  Drop(caller);
  return false;
}

void ProbeResponder::Drop(Caller& caller) {
  if (caller.fd < 0) return;
  close(caller.fd);
  caller.fd = -1;
}

}  // namespace muster::rendezvous
