// The directory in which a daemon keeps its state. One process at a time.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::rendezvous {

// Holds the lock for as long as it lives. The kernel releases it when this process and all that
// inherited the lock have ended, in any way; the file `lock`, which contains the holder's pid,
// remains.
class StateDirectory {
 public:
  // Creates the directory (mode 0700) if it is missing; its parent must exist. Waits for a holder
  // that is just dying, and up to ten seconds for processes that have inherited its lock and die
  // after it. Meanwhile it replaces the handler for SIGALRM: call it while there is no other thread
  // and no other alarm.
  //   AlreadyExists        another process holds it; the sentence names directory and pid
  //   FailedPrecondition   it cannot be used: "make state directory /a/b: Permission denied", or
  //                        others could replace what is in it, or it (base/safe_path.h)
  static absl::StatusOr<StateDirectory> Take(const std::string& path);

  // For a process that received the lock's descriptor from the one that took the directory; `path`
  // is the latter's path().
  static StateDirectory Adopt(std::string path, int lock) { return {std::move(path), lock}; }

  StateDirectory(StateDirectory&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}
  StateDirectory& operator=(StateDirectory&&) = delete;
  ~StateDirectory();

  // The lock's descriptor, close-on-exec: a process that inherits it also holds the directory.
  int lock() const { return lock_; }

  // Absolute and without symbolic links.
  const std::string& path() const { return path_; }

  // Makes its entries durable: files created in it or moved to it survive a power failure.
  absl::Status Sync() const;

 private:
  StateDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;
};

}  // namespace muster::rendezvous
