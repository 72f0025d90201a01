// The directories that a job writes to: its logs, its temporary files, its checkpoints.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "launcher/doctor/mounts.h"
#include "launcher/doctor/report.h"

namespace muster::launcher {

enum class DirectoryUse { kLogs, kTemporary, kCheckpoints };

struct Directory {
  DirectoryUse use = DirectoryUse::kLogs;
  std::string path;
  // It, or the nearest above it that is there: what would be written to.
  std::string existing;
  // Why nothing can be written there, as the system says it; empty: a small file was written.
  std::string trouble;
  std::chrono::milliseconds took{0};  // to write that to the disk
  std::string type;                   // of its file system: "ext4", "nfs"
  bool is_network = false;            // other machines see the same files
  bool is_memory = false;
  std::uint64_t total = 0;  // bytes
  std::uint64_t free = 0;   // bytes for this user
  std::uint64_t files_total = 0;
  std::uint64_t files_free = 0;

  // It was given up, and of the rest there is what had been found by then.
  struct Hang {
    std::string doing;  // "look at /mnt/data", "write a page to /mnt/data/logs"
    std::chrono::milliseconds after{0};
    Mount mount;
  };
  std::optional<Hang> hang{};
};

// Writes a page to a file without a name, and makes nothing that stays. Waits for the disk for
// `limit` at most; a network file system whose server is gone makes others wait for ever. For
// processes with one thread (LookWithin).
Directory ReadDirectory(DirectoryUse use, const std::string& path,
                        std::chrono::milliseconds limit = std::chrono::seconds(10));

// `has_peers`: the job is one of several machines.
void Judge(const Directory& directory, bool has_peers, Report& report);

}  // namespace muster::launcher
