// The index of a sharded checkpoint: where each tensor is, and all that is not a tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/value_tree.h"

namespace muster::trainer {

// As a file, index.json, it is a model.safetensors.index.json as Hugging Face writes it, with
// further members, which their readers pass over:
//   metadata    {"total_size": the bytes of all tensors, "format": ..., "version": 1}
//   weight_map  {"conv1.weight": "shard-00001-of-00002.safetensors", ...}
//   files       {"shard-00001-of-00002.safetensors": {"bytes": 5120, "crc32": "8c736521"}, ...}
//   checkpoint  the tree (TreeJson)
//   crc32       of the other members, as JSON without spaces and sorted by name
// It is written last. So a checkpoint is whole when its index is there and each file is what the
// index says.
struct ShardIndex {
  std::vector<FileFacts> files;         // the shards, in order; at least one
  std::map<std::string, int> shard_of;  // of each tensor, by name
  std::uint64_t tensor_bytes = 0;       // of all tensors together
  NamedTree tree;                       // names tensors of shard_of alone
};

std::string ShardIndexText(const ShardIndex& index);

// The inverse. kInvalidArgument, with one clause, when `text` is no such index, it is damaged, or
// it names files other than shard-00001-of-0000N.safetensors to N or tensors that it does not have.
absl::StatusOr<ShardIndex> ReadShardIndex(std::string_view text);

// The names of the files of a sharded checkpoint.

inline constexpr char kShardIndexName[] = "index.json";
inline constexpr int kMostShards = 99999;  // five digits

// "shard-00001-of-00004.safetensors" for the first (`shard` 0) of 4, as Hugging Face counts them.
std::string ShardName(int shard, int shards);

// The inverse: which of `shards` shards `name` is, or -1 for any other name.
int ShardOf(std::string_view name, int shards);

// Whether there is an index in `directory`, so that it is a checkpoint, whole or damaged.
bool HasShardIndex(const std::string& directory);

// Removes the files of a checkpoint in `directory`, the index first, also unfinished ones, and then
// the directory, unless something else is in it. What cannot be removed stays.
void RemoveShards(const std::string& directory);

// Removes unfinished files and shards other than the `shards` of the checkpoint in `directory`.
void RemoveOtherShards(const std::string& directory, int shards);

}  // namespace muster::trainer
