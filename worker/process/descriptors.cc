#include "worker/process/descriptors.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace muster::worker {
namespace {

// The system call itself, as glibc before 2.34 has no close_range().
bool CloseRange(unsigned first, unsigned flags) {
  return syscall(SYS_close_range, first, UINT_MAX, flags) == 0;
}

// Calls visit(descriptor) for each open descriptor from `first` on, and perhaps for closed ones.
template <typename Visit>
void ForEachFrom(int first, Visit visit) {
  const int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    // The kernel lists them by number, so closing one while listing is safe.
    const bool complete = ForEachEntry(directory, [&](const char* name, unsigned char) {
      const int descriptor = NumberIn(name);
      if (descriptor >= first && descriptor != directory) visit(descriptor);
    });
    close(directory);
    if (complete) return;
  }
  // Without /proc: try every possible number.
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int end = limit.rlim_cur < INT_MAX ? static_cast<int>(limit.rlim_cur) : INT_MAX;
  for (int descriptor = first; descriptor < end; ++descriptor) visit(descriptor);
}

}  // namespace

int NumberIn(const char* name) {
  int number = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return -1;
    number = 10 * number + (*name - '0');
  }
  return number;
}

bool HasCloseRange() {
  return CloseRange(UINT_MAX, 0);
}

void CloseFrom(int first) {
  if (CloseRange(static_cast<unsigned>(first), 0)) return;
  ForEachFrom(first, [](int descriptor) { close(descriptor); });
}

void CloseOnExecFrom(int first) {
  // Kernels before 5.11 have the call but not the flag.
  if (CloseRange(static_cast<unsigned>(first), CLOSE_RANGE_CLOEXEC)) return;
  ForEachFrom(first, [](int descriptor) { fcntl(descriptor, F_SETFD, FD_CLOEXEC); });
}

namespace {

// Per process, as the limit itself.
std::optional<rlim_t> limit_of_workers;

}  // namespace

void SetDescriptorLimitOfWorkers(rlim_t soft) {
  limit_of_workers = soft;
}

std::optional<rlim_t> DescriptorLimitOfWorkers() {
  return limit_of_workers;
}

}  // namespace muster::worker
