// The names of the files of a sharded checkpoint.
#pragma once

#include <string>
#include <string_view>

namespace muster::trainer {

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
