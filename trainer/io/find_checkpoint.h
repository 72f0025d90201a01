// Which checkpoint a path leads to that a user has given.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

struct FoundCheckpoint {
  std::string path;                   // of a file, or of a directory with shards
  std::vector<std::string> warnings;  // sentences on newer ones that were skipped
};

// The newest intact checkpoint of a directory of checkpoints (CheckpointDirectory), the one that
// the directory's file `latest` or `best` names, or else `path` itself, there or not. Errors as
// CheckpointDirectory::FindNewest; kInvalidArgument also when the directory has none, or `latest`
// names none.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path);

}  // namespace muster::trainer
