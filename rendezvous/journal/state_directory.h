// The directory that a daemon keeps its state in, for itself alone.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::rendezvous {

// Holds the lock for as long as it lives. The kernel frees it when the process and those that have
// inherited the lock have ended, however they ended; the file `lock`, with the holder's pid in it,
// stays.
class StateDirectory {
 public:
  // Makes the directory, for its owner alone (0700), when it is missing; its parent must be there.
  // A holder that is dying at this moment is waited for; for the others that have the lock of it,
  // and die after it, up to ten seconds. Sets and takes back a handler for SIGALRM meanwhile: to be
  // called where there is no other thread and nobody else's alarm.
  //   AlreadyExists        another process holds it; the sentence names directory and pid
  //   FailedPrecondition   it cannot be used: "make state directory /a/b: Permission denied"
  static absl::StatusOr<StateDirectory> Take(const std::string& path);

  // For a process that was given the lock's descriptor by the one that has taken the directory;
  // `path` as that one's path().
  static StateDirectory Adopt(std::string path, int lock) { return {std::move(path), lock}; }

  StateDirectory(StateDirectory&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}
  StateDirectory& operator=(StateDirectory&&) = delete;
  ~StateDirectory();

  // The lock's descriptor, close-on-exec: whoever inherits it holds the directory, too.
  int lock() const { return lock_; }

  // Absolute and without symbolic links.
  const std::string& path() const { return path_; }

  // Makes the names in it durable: what was made in or moved to it is found there after a power
  // failure.
  absl::Status Sync() const;

 private:
  StateDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;
};

}  // namespace muster::rendezvous
