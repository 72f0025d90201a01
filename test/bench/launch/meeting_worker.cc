// meeting_worker FILE COUNT: ends when COUNT of its kind have begun. They meet in FILE, 16 bytes of
// zeros, by which the others know; the last to begin leaves there when that was (CLOCK_MONOTONIC,
// in nanoseconds, at byte 8). Hosts of the benchmark are network namespaces, so they share the file
// and the clock.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

struct Meeting {
  std::atomic<std::uint32_t> begun;
  std::atomic<std::uint32_t> is_complete;
  std::int64_t complete_ns;
};

constexpr timespec kPatience = {60, 0};

std::int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int Futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
          const timespec* timeout) {
  return static_cast<int>(syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0));
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t begin = Now();
  const int file = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
  void* const map =
      file < 0 ? MAP_FAILED
               : mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) {
    std::fprintf(stderr, "usage: meeting_worker FILE COUNT, where FILE has 16 bytes\n");
    return 2;
  }
  Meeting& meeting = *static_cast<Meeting*>(map);
  if (meeting.begun.fetch_add(1) + 1 == static_cast<std::uint32_t>(std::atoi(argv[2]))) {
    meeting.complete_ns = begin;
    meeting.is_complete = 1;
    Futex(meeting.is_complete, FUTEX_WAKE, INT32_MAX, nullptr);
  }
  while (meeting.is_complete == 0) {
    if (Futex(meeting.is_complete, FUTEX_WAIT, 0, &kPatience) == 0) continue;
    if (meeting.is_complete == 0 && errno == ETIMEDOUT) {
      std::fprintf(stderr, "meeting_worker: %u of %s have begun in %ld s\n", meeting.begun.load(),
                   argv[2], static_cast<long>(kPatience.tv_sec));
      return 1;
    }
  }
  return 0;
}
