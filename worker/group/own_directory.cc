#include "worker/group/own_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/failure.h"

namespace muster::worker {

absl::Status MakeOwnDirectory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return base::SystemFailure(absl::StatusCode::kFailedPrecondition, "cannot create log directory",
                             directory);
}

void RemoveIfEmpty(const std::string& directory) {
  ::rmdir(directory.c_str());
}

}  // namespace muster::worker
