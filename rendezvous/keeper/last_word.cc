#include "rendezvous/keeper/last_word.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>

#include "absl/status/status.h"
#include "base/companion.h"
#include "base/failure.h"
#include "rendezvous/keeper/descriptors.h"
#include "rendezvous/keeper/knock_desk.h"

namespace muster::rendezvous {
namespace {

struct Sockets {
  std::array<int, KnockDesk::kMaxSockets> fds;
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
  // When it has died already the number may mean another process.
  if (getppid() != parent) {
    close(ended.fd);
    return;
  }
  // Whoever can't tell that his parent is dead must never say so.
  if (ended.fd < 0) _exit(1);
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  close(ended.fd);
}

[[noreturn]] void Main(pid_t parent, const Sockets& sockets, const KnockKey& key,
                       const std::atomic<std::uint32_t>& attending) {
  CloseAllBut(sockets.span());
  AwaitEndOf(parent);

  KnockDesk desk(sockets.span(), key, KnockWord::kGone);
  desk.Open();
  std::int64_t end = NowMs() + std::chrono::milliseconds(LastWord::kStay).count();
  for (;;) {
    if (desk.answered() >= attending) {
      end = std::min(end, NowMs() + std::chrono::milliseconds(LastWord::kLinger).count());
    }
    const std::int64_t left = end - NowMs();
    if (left <= 0) break;
    pollfd knocking = {desk.fd(), POLLIN, 0};
    if (poll(&knocking, 1, static_cast<int>(left)) <= 0) continue;
    if (desk.Handle()) break;
  }
  // Who has asked for the port is told by the end of his connection, which comes after this.
  for (const int fd : sockets.span()) close(fd);
  _exit(0);
}

}  // namespace

absl::StatusOr<LastWord> LastWord::Start(std::span<const int> sockets, const KnockKey& key) {
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
  return LastWord(*pid, attending);
}

LastWord::~LastWord() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  base::Reap(pid_);
  munmap(attending_, sizeof *attending_);
}

}  // namespace muster::rendezvous
