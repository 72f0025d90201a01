// Checkpoints of either form: one file of torch.save, or a directory of shards.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/value.h"

namespace muster::trainer {

// Reads the checkpoint at `path`: shards if that is a directory, else a file. Errors as
// ReadTorchFile and ReadShards.
absl::StatusOr<Value> ReadCheckpoint(const std::string& path);

// Whether ReadCheckpoint could read `path`. Reads all of it in small pieces and keeps nothing.
absl::Status CheckCheckpoint(const std::string& path);

}  // namespace muster::trainer
