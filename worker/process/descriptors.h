// close_range(2), and a replacement for Linux before 5.9 and for containers whose seccomp filter
// lacks it. Everything here is async-signal-safe, for use between fork and exec.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

namespace muster::worker {

// Whether the system call exists. Checked each time, which costs less than a microsecond.
bool HasCloseRange();

// Closes every descriptor from `first` on.
void CloseFrom(int first);

// The same, but leaves them open until exec.
void CloseOnExecFrom(int first);

// The limit on open files for processes that we start.

// An agent that raises its own limit (RLIMIT_NOFILE) must not pass that on to its workers: programs
// that use select() break with descriptors above 1023. Processes started from now on get `soft`, or
// the hard limit if that is lower; before this call they get our own limit. Main thread.
void SetDescriptorLimitOfWorkers(rlim_t soft);

// nullopt: they get our own limit.
std::optional<rlim_t> DescriptorLimitOfWorkers();

// Lists a directory without allocating memory: between fork and exec, and in the guard.

// The format of getdents64.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

// Calls visit(name, type) for each entry of an open directory. False on a read error.
// Async-signal-safe if `visit` is, unlike readdir(), which allocates.
template <typename Visit>
bool ForEachEntry(int directory, Visit visit) {
  alignas(DirectoryEntry) char buffer[8192];
  for (;;) {
    const long count = syscall(SYS_getdents64, directory, buffer, sizeof buffer);
    if (count <= 0) return count == 0;
    for (long at = 0; at < count;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      visit(entry->name, entry->type);
      at += entry->size;
    }
  }
}

// The number that an entry's name is, a descriptor or a pid; -1 for any other name.
int NumberIn(const char* name);

}  // namespace muster::worker
