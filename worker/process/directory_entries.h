// Reading a directory where memory must not be allocated: between fork and exec, and in the guard.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace muster::worker {

// As getdents64 writes it.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

// Calls visit(name, type) for each entry of an open directory. False when it could not be read to
// its end. Async-signal-safe if `visit` is; readdir() allocates.
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

}  // namespace muster::worker
