// Opens a worker's log file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/unique_fd.h"

namespace muster::worker {

// Opens `path` for appending, close-on-exec, and creates it (mode 0600) and the directories above
// it (0700) where they are missing. Never waits and never follows a symbolic link at the end of the
// path; what is neither a regular file nor a character device is refused. The error says which path
// and why.
absl::StatusOr<UniqueFd> OpenLogFile(const std::string& path);

}  // namespace muster::worker
