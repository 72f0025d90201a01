#include "rendezvous/keeper/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

namespace muster::rendezvous {
namespace {

// As many as there may be where nobody lists them; with that the loop takes a few milliseconds.
constexpr rlim_t kManyDescriptors = 1 << 16;

bool IsKept(std::span<const int> kept, int fd) {
  return std::find(kept.begin(), kept.end(), fd) != kept.end();
}

// From `first` up to `end`, which is not closed.
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

}  // namespace

void CloseListedBut(std::span<const int> kept) {
  const int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return CloseUpToLimitBut(kept);
  // opendir would allocate.
  alignas(dirent64) char entries[4096];
  bool closed_some = true;
  // The list is made while it is read, and what is closed meanwhile may hide what comes after.
  while (closed_some) {
    closed_some = false;
    lseek(list, 0, SEEK_SET);
    long size;
    while ((size = syscall(SYS_getdents64, list, entries, sizeof entries)) > 0) {
      for (long at = 0; at < size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
        at += entry->d_reclen;
        // "." and ".." are no numbers.
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

}  // namespace muster::rendezvous
