// Faults in SQLite's files: writes and syncs that fail, a process that is killed during one, and a
// power failure that loses what was not synced.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace muster::rendezvous::test {

// A VFS that is registered with SQLite under kName while it exists; only one at a time. It forwards
// everything to the system's VFS, and tracks for each file what would survive a power failure.
class FaultVfs {
 public:
  static constexpr const char* kName = "fault";

  enum class Kind { kWrite, kSync, kTruncate, kDelete };
  struct Operation {
    Kind kind;
    std::string file;      // without the directory
    std::size_t size = 0;  // bytes to write
  };
  struct Fault {
    int result = SQLITE_IOERR;  // returned to SQLite instead of the operation's result
    int system_errno = 0;
    std::size_t written = 0;  // bytes of a write that are written nevertheless
    bool kill = false;        // then kill this process (SIGKILL)
  };

  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  // Called before each operation that changes a file, on that operation's thread. May be empty.
  std::function<std::optional<Fault>(const Operation&)> before;

  // Writes the files into a directory as they would be after a power failure now: each sector (512
  // bytes) that was not synced survives with probability `chance`. File names always survive.
  void WritePowerFailure(const std::string& directory, double chance, std::mt19937& random) const;

 private:
  struct Change {
    std::size_t offset = 0;  // for a truncation: the new size
    std::optional<std::string> bytes;
  };
  struct Durable {
    std::string bytes;
    std::vector<Change> unsynced;
  };
  struct File;
  struct Methods;

  std::optional<Fault> Ask(Kind kind, const std::string& file, std::size_t size = 0);
  static void Apply(const Change& change, std::string& bytes);

  sqlite3_vfs vfs_ = {};
  sqlite3_vfs* const system_;
  std::map<std::string, Durable> files_;
};

}  // namespace muster::rendezvous::test
