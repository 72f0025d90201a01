// A host's place in a job, which one process at a time may have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster::launcher {

// A host that was lost may be connected to again while what was started there before has not ended
// yet. So whoever is started takes a lock, on a file in the directory where this user's runs find
// one another (registry/runs_place.h), which nobody else can enter. The kernel lets go of it when
// the process ends, however it ends.
class HostPlace {
 public:
  // Of the host with that number in that job, in the first directory that can be used, which is
  // made (mode 0700) if it is missing. Unavailable: another process has it. InvalidArgument: `job`
  // is no name of a file.
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
