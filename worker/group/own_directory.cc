#include "worker/group/own_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/failure.h"
#include "base/safe_path.h"

namespace muster::worker {

absl::Status MakeOwnDirectory(const std::string& directory) {
  constexpr char kAttempt[] = "cannot create log directory";
  const absl::StatusOr<base::Spot> spot = base::FindSpot(directory);
  if (!spot.ok()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, kAttempt, directory,
                         spot.status().message());
  }
  if (::mkdirat(spot->directory.get(), spot->name.c_str(), 0700) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kAttempt, directory);
}

void RemoveIfEmpty(const std::string& directory) {
  ::rmdir(directory.c_str());
}

}  // namespace muster::worker
