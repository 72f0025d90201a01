// The path of this program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"

namespace muster::launcher {

// The path of this process's executable, or "muster" if it is unknown.
std::string OwnProgram();

// This program, for hosts that do not have it.

// The executable of this process, even if its path was replaced since. Both functions read it
// completely, which takes tenths of a second, and need little more memory than their result.

// Its SHA-256 in hexadecimal, with which a host verifies the transfer and finds its cached copy.
absl::StatusOr<std::string> HashOwnProgram();

// The file, gzipped.
absl::StatusOr<std::string> PackOwnProgram();

// Identifies this build: the linker's build id in hexadecimal; empty if there is none.
std::string OwnBuild();

// A lock that allows one process per job on a host.

// A lost host may be connected to again while its previous processes are still stopping. So each
// process locks a file in the directory where this user's runs find one another (environment.h),
// which only this user can access. The kernel releases the lock when the process dies.
class HostPlace {
 public:
  // Locks host number `host` of `job`, in the first usable directory, which is created (mode 0700)
  // if it is missing. Unavailable: another process holds the lock. InvalidArgument: `job` is not a
  // valid file name.
  static absl::StatusOr<std::unique_ptr<HostPlace>> Take(const std::vector<std::string>& dirs,
                                                         const std::string& job, int host);

  // Removes the file.
  ~HostPlace();
  HostPlace(const HostPlace&) = delete;
  HostPlace& operator=(const HostPlace&) = delete;

 private:
  HostPlace(base::UniqueFd directory, std::string name, base::UniqueFd file);

  const base::UniqueFd directory_;
  const std::string name_;
  const base::UniqueFd file_;  // locked
};

}  // namespace muster::launcher
