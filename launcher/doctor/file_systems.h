// The directories that a job writes to: logs, temporary files, checkpoints.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "launcher/doctor/report.h"

namespace muster::launcher {

// The mount that a path is on, found without touching the path.

struct Mount {
  std::string point;  // "/mnt/data"; empty if unknown
  std::string type;   // "nfs4", "fuse.sshfs"
};

// `path` is absolute and free of links; `mountinfo` is the text of /proc/self/mountinfo.
Mount MountOf(const std::string& path, const std::string& mountinfo);

enum class DirectoryUse { kLogs, kTemporary, kCheckpoints };

struct Directory {
  DirectoryUse use = DirectoryUse::kLogs;
  std::string path;
  // The path itself or its nearest existing ancestor: where files would be created.
  std::string existing;
  // The system's error if the directory is not writable; empty if a small file was written.
  std::string trouble;
  std::chrono::milliseconds took{0};  // to write the small file to disk
  std::string type;                   // of its file system: "ext4", "nfs"
  bool is_network = false;            // other machines see the same files
  bool is_memory = false;
  std::uint64_t total = 0;  // bytes
  std::uint64_t free = 0;   // bytes available to this user
  std::uint64_t files_total = 0;
  std::uint64_t files_free = 0;

  // Set if the check timed out; the other fields then hold what was found until then.
  struct Hang {
    std::string doing;  // "look at /mnt/data", "write a page to /mnt/data/logs"
    std::chrono::milliseconds after{0};
    Mount mount;
  };
  std::optional<Hang> hang{};
};

// Writes a page to an unnamed file, and leaves nothing behind. Waits at most `limit` for the disk;
// a network file system whose server is down may block forever. For single-threaded processes
// (LookWithin).
Directory ReadDirectory(DirectoryUse use, const std::string& path,
                        std::chrono::milliseconds limit = std::chrono::seconds(10));

// `has_peers`: the job spans several machines.
void Judge(const Directory& directory, bool has_peers, Report& report);

}  // namespace muster::launcher
