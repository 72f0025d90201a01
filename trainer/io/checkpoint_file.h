// Checkpoints of either form: one file of torch.save, or a directory of shards.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/shard_index.h"
#include "trainer/io/state_dict.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// Reads the checkpoint at `path`: shards if that is a directory, else a file. Errors as
// ReadTorchFile and ReadShards.
absl::StatusOr<Value> ReadCheckpoint(const std::string& path);

// Whether ReadCheckpoint could read `path`. Reads all of it in small pieces and keeps nothing.
absl::Status CheckCheckpoint(const std::string& path);

// Checkpoints in a directory of shards with an index.

// Writing. Anybody may write any shard, at the same time as others; the index comes when all are
// there. Each file appears complete or not at all, and is synced to disk when a function returns.

// Writes shard `shard` of `shards` with `tensors` (ShardPlan::tensors[shard]) into `directory`,
// which is there. Errors as WriteSafetensors.
absl::StatusOr<FileFacts> WriteShard(const std::string& directory, int shard, int shards,
                                     const std::vector<NamedTensor>& tensors);

// Writes the index, with the facts of all files. From then on the checkpoint is there. Errors as
// DurableFile.
absl::Status WriteShardIndex(const std::string& directory, const ShardIndex& index);

// Reading. kInvalidArgument, one sentence with the file's path, when a file is missing, damaged, or
// not what the index says it is; kUnavailable when reading fails or memory runs out.

// Told of each shard that has been read: which, of how many, and its bytes.
using OnShard = std::function<void(int shard, int shards, std::uint64_t bytes)>;

// Reads the checkpoint in `directory`. Its tensors are on the CPU. Needs memory for it and for one
// shard besides.
absl::StatusOr<Value> ReadShards(const std::string& directory, const OnShard& on_shard = nullptr);

// Whether ReadShards could read `directory`. Reads all of it in small pieces and keeps nothing.
absl::Status CheckShards(const std::string& directory);

// The text of the index in `directory`, unread. kInvalidArgument when there is none.
absl::StatusOr<std::string> ReadIndexText(const std::string& directory);

// The checkpoint of `index` from the contents of its files, each a dense uint8 tensor on the CPU.
// The value's tensors are views of them; only those that are not aligned there are copied.
// `directory` is for messages. Errors as above.
absl::StatusOr<Value> AssembleShards(const std::string& directory, const ShardIndex& index,
                                     const std::vector<at::Tensor>& files);

// Which checkpoint a path leads to that a user has given.

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
