// Checkpoints in a directory of shards with an index.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/file_facts.h"
#include "trainer/io/shards/shard_index.h"
#include "trainer/io/value.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
