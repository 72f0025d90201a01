// SQLite's files with faults: writes and syncs that fail, a process that is killed within one, and
// a power failure that takes what was not synced.
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

// Registered with SQLite by its name for as long as it lives; one at a time. It hands everything on
// to the system's layer, and keeps beside each file what of it a power failure would leave.
class FaultVfs {
 public:
  static constexpr const char* kName = "fault";

  enum class Kind { kWrite, kSync, kTruncate, kDelete };
  struct Operation {
    Kind kind;
    std::string file;      // without its directory
    std::size_t size = 0;  // bytes to write
  };
  struct Fault {
    int result = SQLITE_IOERR;  // what SQLite is told, rather than the operation's result
    int system_errno = 0;
    std::size_t written = 0;  // so much of a write is done all the same
    bool kill = false;        // and then this process is killed (SIGKILL)
  };

  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  // Asked before each operation that changes a file, on the thread that does it. May be empty.
  std::function<std::optional<Fault>(const Operation&)> before;

  // Writes the files, as they would be found if the power failed now, into a directory: of what was
  // not synced each sector (512 bytes) is there with that chance. Names are always there.
  void WritePowerFailure(const std::string& directory, double chance, std::mt19937& random) const;

 private:
  struct Change {
    std::size_t offset = 0;  // for a truncation, the new size
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
